package process

import (
	"errors"
	"os"
	"os/exec"
)

// StartDetached starts a program that outlives this process and its terminal. The program has a session of its own
// and none of this process's descriptors. Its standard input has the bytes of the parameter "input", and its output
// is discarded. The channel "ended" is closed when the program has ended.
func StartDetached(argv []string, dir string, env []string, input []byte) (ended <-chan struct{}, err error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, env
	detach(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, stdin.Close())
	}
	over := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the program writes its errors to its own debug trail
		close(over)
	}()
	_, err = stdin.Write(input)
	if cerr := stdin.Close(); err == nil && !errors.Is(cerr, os.ErrClosed) { // Wait closes stdin, too
		err = cerr
	}
	return over, err
}
