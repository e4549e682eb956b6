// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/safchain/ethtool"
)

// knob is one thing that can be set: a file of /proc or /sys, an offload of a device, or the size of its receive ring.
type knob struct {
	Kind   string `json:"kind"`   // "file", "feature" or "rx-ring"
	Target string `json:"target"` // path, or device
	Key    string `json:"key"`    // kernel name of the offload
}

const (
	kindFile    = "file"
	kindFeature = "feature"
	kindRxRing  = "rx-ring"
)

func (k knob) read() (string, error) {
	switch k.Kind {
	case kindFile:
		b, err := os.ReadFile(k.Target)
		if err != nil {
			return "", fmt.Errorf("read setting: %w", err)
		}
		return strings.TrimSpace(string(b)), nil
	case kindFeature:
		return k.withEthtool(func(e *ethtool.Ethtool) (string, error) {
			f, err := e.Features(k.Target)
			if err != nil {
				return "", err
			}
			on, ok := f[k.Key]
			if !ok {
				return "", fmt.Errorf("no offload is called %s", k.Key)
			}
			return onOff(on), nil
		})
	case kindRxRing:
		return k.withEthtool(func(e *ethtool.Ethtool) (string, error) {
			r, err := e.GetRing(k.Target)
			return strconv.Itoa(int(r.RxPending)), err
		})
	}
	return "", fmt.Errorf("no setting is of kind %q", k.Kind)
}

func (k knob) write(v string) error {
	switch k.Kind {
	case kindFile:
		if err := os.WriteFile(k.Target, []byte(v), 0); err != nil {
			return fmt.Errorf("write setting: %w", err)
		}
		return nil
	case kindFeature:
		_, err := k.withEthtool(func(e *ethtool.Ethtool) (string, error) {
			return "", e.Change(k.Target, map[string]bool{k.Key: v == onOff(true)})
		})
		return err
	case kindRxRing:
		n, err := strconv.ParseUint(v, 10, 32)
		if err != nil {
			return fmt.Errorf("ring size %q: %w", v, err)
		}
		_, err = k.withEthtool(func(e *ethtool.Ethtool) (string, error) {
			r, err := e.GetRing(k.Target)
			if err == nil {
				r.RxPending = uint32(n)
				_, err = e.SetRing(k.Target, r)
			}
			return "", err
		})
		return err
	}
	return fmt.Errorf("no setting is of kind %q", k.Kind)
}

func (k knob) withEthtool(do func(*ethtool.Ethtool) (string, error)) (string, error) {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return "", fmt.Errorf("open ethtool: %w", err)
	}
	defer e.Close()
	v, err := do(e)
	if err != nil {
		return "", fmt.Errorf("%s of %s: %w", strings.TrimSpace(k.Kind+" "+k.Key), k.Target, err)
	}
	return v, nil
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
