// The library bcryptprimitives.dll for versions of Wine that lack it, such as Debian 12's. Go's runtime needs it.
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) { return RtlGenRandom(data, size); }
