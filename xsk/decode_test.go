// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		o     Options
		errno syscall.Errno
		want  error // nil: none of the sentinels
	}{
		{Options{}, unix.EBUSY, ErrInUse},
		{Options{Bind: ZeroCopy}, unix.EOPNOTSUPP, ErrNoZeroCopy},
		{Options{}, unix.EOPNOTSUPP, nil},
		{Options{Device: "nosuchdevice0", Queue: 3}, unix.EINVAL, ErrNoQueue}, // the device does not say how many it has
		{Options{Device: "nosuchdevice0", MultiBuffer: true}, unix.EINVAL, ErrNotSupported},
		{Options{Device: "nosuchdevice0"}, unix.EINVAL, nil},
		{Options{}, unix.ENODEV, nil},
	} {
		err := decodeBind(c.o, c.errno)
		if !errors.Is(err, c.errno) {
			t.Errorf("%v: errno lost in %v", c.errno, err)
		}
		for _, s := range []error{ErrInUse, ErrNoZeroCopy, ErrNoQueue, ErrNotSupported} {
			if errors.Is(err, s) != (s == c.want) {
				t.Errorf("%+v, %v: decoded as %v", c.o, c.errno, err)
			}
		}
	}
	if err := decodeSocket(unix.EAFNOSUPPORT); !errors.Is(err, ErrNotSupported) || !errors.Is(err, unix.EAFNOSUPPORT) {
		t.Error(err)
	}
	if err := decodeSocket(unix.EPERM); !errors.Is(err, unix.EPERM) {
		t.Error(err)
	}
}

func TestSocketsOnAUMEMAreAlike(t *testing.T) {
	first := Settings{Bind: Copy, NeedWakeup: true}
	for _, c := range []struct {
		o     Options
		field string
	}{
		{Options{}, ""}, {Options{Bind: Copy}, ""}, {Options{Bind: ZeroCopy}, "Bind"}, {Options{NoNeedWakeup: true}, "NoNeedWakeup"}, {Options{MultiBuffer: true}, "MultiBuffer"},
	} {
		var oe *OptionError
		if err := alike(c.o, first); errors.As(err, &oe) != (c.field != "") || oe != nil && oe.Field != c.field {
			t.Errorf("%+v: %v, want a complaint about %q", c.o, err, c.field)
		}
	}
}

func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Answer
	}{{nil, Yes}, {unix.EPERM, No}, {ErrDowngraded, No}, {unix.EBUSY, Unknown}, {unix.ENODEV, Unknown}, {errors.Join(ErrNoQueue, unix.EINVAL), Unknown}, {ErrNoHugePages, No}} {
		if got := answer(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{Auto.String(): "auto", ZeroCopy.String(): "zerocopy", BusyPoll.String(): "busypoll", Generic.String(): "generic",
		HugeRequire.String(): "require", Woken.String(): "woken", No.String(): "no", WaitMode(7).String(): "unknown(7)"} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
