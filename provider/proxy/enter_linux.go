package proxy

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// inherited is the file descriptor of the socket to Perlica, in the process that calls Enter.
const inherited = 3

// maxLocal is the maximum number of addresses that Locals returns.
const maxLocal = 32

// Open starts a proxy for the process that cmd describes. This process must call Enter with the result of Locals. The
// proxy calls the function "record" with each ended or refused connection, one after another. The caller must call
// Started after the start of the process, and Close after its end.
func Open(cmd *exec.Cmd, hosts []Host, record func(Connection)) (*Proxy, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	own, child := os.NewFile(uintptr(fds[0]), "proxy"), os.NewFile(uintptr(fds[1]), "proxy")
	conn, err := net.FileConn(own)
	_ = own.Close() // conn has a copy
	if err != nil {
		_ = child.Close() // nothing was written
		return nil, err
	}
	p := newProxy(hosts, record)
	p.own, p.child = conn, child
	cmd.ExtraFiles = []*os.File{child}
	p.open.Add(1)
	go p.receive(conn.(*net.UnixConn))
	return p, nil
}

// Locals returns the loopback addresses of services of this machine among the hosts. Enter listens on the same
// addresses in the agent's network, so that a program needs no proxy for these services.
func Locals(hosts []Host) (addresses []string) {
	for _, h := range hosts {
		if a := h.loopback(); a != "" && len(addresses) < maxLocal && !slices.Contains(addresses, a) {
			addresses = append(addresses, a)
		}
	}
	return addresses
}

// receive receives the listeners that Enter sends through the socket, and serves each of them.
func (p *Proxy) receive(from *net.UnixConn) {
	defer p.open.Done()
	names, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(4*(maxLocal+1)))
	n, m, _, _, err := from.ReadMsgUnix(names, rights)
	if err != nil || n == 0 {
		return // the sandbox did not start, or Close was called
	}
	messages, err := unix.ParseSocketControlMessage(rights[:m])
	if err != nil || len(messages) != 1 {
		return
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return
	}
	for i, name := range strings.Split(string(names[:n]), ",") {
		if i >= len(fds) {
			return
		}
		f := os.NewFile(uintptr(fds[i]), "listener")
		l, err := net.FileListener(f)
		_ = f.Close() // l has a copy
		if err != nil {
			continue // without this listener, the agent cannot connect to the proxy
		}
		if !p.begin() {
			_ = l.Close() // Close was called
			continue
		}
		entry := slices.IndexFunc(p.hosts, func(h Host) bool { return name != "" && h.loopback() == name })
		if entry < 0 {
			go p.serve(l)
		} else {
			go p.serveLocal(l, p.hosts[entry])
		}
	}
}

// variables are the names of the environment variables with the address of a proxy, as programs read them.
var variables = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"}

// Enter listens in the network namespace of this process, on one port for the proxy and on the addresses of locals. It
// sends the listeners to Perlica through the inherited socket, and then replaces this process by the program argv. It
// returns only if it fails.
func Enter(locals, argv, environ []string) error {
	unix.CloseOnExec(inherited)
	var names []string
	var fds []int
	for _, address := range append(locals, "") {
		name := address
		if name == "" {
			address = "127.0.0.1:0"
		}
		l, err := net.Listen("tcp", address)
		if err != nil && name != "" {
			continue // the agent can also use the proxy for this service
		}
		if err != nil {
			return fmt.Errorf("the network of the sandbox: %w", err)
		}
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			return err
		}
		names, fds = append(names, name), append(fds, int(f.Fd()))
		if name == "" {
			environ = withProxy(environ, "http://"+l.Addr().String())
		}
	}
	if err := unix.Sendmsg(inherited, []byte(strings.Join(names, ",")), unix.UnixRights(fds...), nil, 0); err != nil {
		return os.NewSyscallError("sendmsg", err)
	}
	err := unix.Exec(argv[0], argv, environ)
	return errors.Join(fmt.Errorf("%s cannot be started", argv[0]), err)
}

// withProxy returns the environment variables with which a program uses the proxy at this address.
func withProxy(environ []string, address string) []string {
	environ = slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(variables, name) || strings.EqualFold(name, "NO_PROXY") || name == "NODE_USE_ENV_PROXY"
	})
	for _, name := range variables {
		environ = append(environ, name+"="+address)
	}
	return append(environ, "NODE_USE_ENV_PROXY=1")
}
