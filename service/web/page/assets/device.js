// This module holds this browser's key. No script can read the private half, not even a script of this page.
const store = 'device';

function open() {
	return new Promise((resolve, reject) => {
		const req = indexedDB.open('perlica', 1);
		req.onupgradeneeded = () => req.result.createObjectStore(store);
		req.onsuccess = () => resolve(req.result);
		req.onerror = () => reject(req.error);
	});
}

async function act(mode, f) {
	const db = await open();
	try {
		return await new Promise((resolve, reject) => {
			const tx = db.transaction(store, mode);
			const req = f(tx.objectStore(store));
			tx.oncomplete = () => resolve(req.result);
			tx.onerror = tx.onabort = () => reject(tx.error);
		});
	} finally {
		db.close();
	}
}

// kept returns the paired device {id, name, rights, key}, or undefined.
export const kept = () => act('readonly', (s) => s.get('self'));
export const keep = (device) => act('readwrite', (s) => s.put(device, 'self'));
export const forget = () => act('readwrite', (s) => s.delete('self'));

// possible reports whether this browser can sign here. It can over https and on localhost only.
export const possible = () => Boolean(globalThis.crypto && crypto.subtle && globalThis.indexedDB);

export const make = () => crypto.subtle.generateKey({name: 'ECDSA', namedCurve: 'P-256'}, false, ['sign']);
export const publicHalf = async (pair) => {
	const {kty, crv, x, y} = await crypto.subtle.exportKey('jwk', pair.publicKey);
	return {kty, crv, x, y};
};

const utf8 = (text) => new TextEncoder().encode(text);
export const sign = async (key, text) => new Uint8Array(await crypto.subtle.sign({name: 'ECDSA', hash: 'SHA-256'}, key.privateKey, utf8(text)));
export const digest = async (bytes) => new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));

// base64 and base64url encode bytes as RFC 4648 describes. base64url is for addresses and has no padding.
export function base64(bytes) {
	let s = '';
	for (let i = 0; i < bytes.length; i += 4096) s += String.fromCharCode(...bytes.subarray(i, i + 4096));
	return btoa(s);
}
export const base64url = (bytes) => base64(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
