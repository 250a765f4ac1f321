package push

import (
	"crypto/ecdh"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	webpush "github.com/SherClockHolmes/webpush-go"

	"github.com/perlica/perlica/eventlog/disk"
)

// Subscription is where a browser's push service takes messages for it, and how they are encrypted: as
// a browser's PushSubscription is in JSON.
type Subscription struct {
	Endpoint string `json:"endpoint"`
	Keys     Keys   `json:"keys"`
}

// Keys are the browser's public key and its secret, in base64 for addresses.
type Keys struct {
	P256dh string `json:"p256dh"`
	Auth   string `json:"auth"`
}

// ErrSubscription says that a subscription cannot be one.
var ErrSubscription = errors.New("that is no subscription at a public push service")

// longest is how long an endpoint may be.
const longest = 2000

// check says why a subscription is none. Which addresses its host has is judged when it is dialled.
func (sub Subscription) check() error {
	u, err := url.Parse(sub.Endpoint)
	switch {
	case err != nil || len(sub.Endpoint) > longest:
		return fmt.Errorf("%w: its endpoint is no address", ErrSubscription)
	case u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Hostname() == "" || u.Port() != "" && u.Port() != "443":
		return fmt.Errorf("%w: its endpoint is not https at the usual port", ErrSubscription)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && guard().SafeAddr(ip.WithZone("")) != nil {
		return fmt.Errorf("%w: its address is not public", ErrSubscription)
	}
	point, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(sub.Keys.P256dh, "="))
	if err == nil {
		_, err = ecdh.P256().NewPublicKey(point)
	}
	auth, aerr := base64.RawURLEncoding.DecodeString(strings.TrimRight(sub.Keys.Auth, "="))
	if err != nil || aerr != nil || len(auth) != 16 {
		return fmt.Errorf("%w: its keys are none", ErrSubscription)
	}
	return nil
}

// suffix is how the name of a device's file ends.
const suffix = ".json"

func (s *Sender) file(device string) string { return filepath.Join(s.opt.Dir, device+suffix) }

// Subscribe keeps a device's subscription in the place of the one it had. When it returns nil it is kept,
// also after a power failure.
func (s *Sender) Subscribe(device string, sub Subscription) error {
	if err := sub.check(); err != nil {
		return err
	}
	data, err := json.Marshal(sub)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(s.opt.Dir, 0o700); err != nil {
		return err
	}
	return disk.WriteFile(s.file(device), data, 0o600, os.Rename)
}

// Unsubscribe removes a device's subscription, if there is one.
func (s *Sender) Unsubscribe(device string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove(device)
}

// remove removes the file. The caller holds mu.
func (s *Sender) remove(device string) error {
	err := os.Remove(s.file(device))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// gone removes a subscription that its push service does not know any more, unless it was replaced.
func (s *Sender) gone(device string, sub Subscription) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.read(device)
	if err != nil || now != sub {
		return nil
	}
	return s.remove(device)
}

// Subscribed are the devices that have a subscription.
func (s *Sender) Subscribed() (devices []string, err error) {
	entries, err := os.ReadDir(s.opt.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if device, ok := strings.CutSuffix(e.Name(), suffix); ok && !strings.HasPrefix(device, ".") {
			devices = append(devices, device)
		}
	}
	return devices, err
}

func (s *Sender) subscription(device string) (Subscription, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read(device)
}

// read reads a subscription. The caller holds mu.
func (s *Sender) read(device string) (sub Subscription, err error) {
	data, err := os.ReadFile(s.file(device))
	if err != nil {
		return sub, err
	}
	if err := json.Unmarshal(data, &sub); err != nil {
		return sub, fmt.Errorf("%s: %w", s.file(device), err)
	}
	return sub, sub.check()
}

// Key is the public key under which browsers subscribe (VAPID). It is made when it is first asked for.
func (s *Sender) Key() (string, error) {
	_, public, err := s.keys()
	return public, err
}

// keys reads the key, or makes it. Of two processes that make one the first counts.
func (s *Sender) keys() (private, public string, err error) {
	path := filepath.Join(s.opt.Dir, "key")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(s.opt.Dir, 0o700); err != nil {
			return "", "", err
		}
		made, _, err := webpush.GenerateVAPIDKeys()
		if err != nil {
			return "", "", err
		}
		if err := disk.WriteFile(path, []byte(made+"\n"), 0o600, os.Link); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", "", err
		}
		data, err = os.ReadFile(path)
		if err != nil {
			return "", "", err
		}
	} else if err != nil {
		return "", "", err
	}
	private = strings.TrimSpace(string(data))
	scalar, err := base64.RawURLEncoding.DecodeString(private)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", path, err)
	}
	key, err := ecdh.P256().NewPrivateKey(scalar)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", path, err)
	}
	return private, base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes()), nil
}
