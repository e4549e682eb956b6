// SPDX-License-Identifier: Apache-2.0

package knob

import (
	"fmt"
	"strconv"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// form is how a driver's number is written.
type form interface {
	text(n uint32) string
	parse(s string) (uint32, error)
}

type number struct{}

func (number) text(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func (number) parse(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err
}

type onOff struct{}

func (onOff) text(n uint32) string {
	if n != 0 {
		return "on"
	}
	return "off"
}

func (onOff) parse(s string) (uint32, error) {
	switch s {
	case "on":
		return 1, nil
	case "off":
		return 0, nil
	}
	return 0, fmt.Errorf("%q is neither on nor off", s)
}

// with opens ethtool's socket in the calling thread's network namespace.
func with(do func(*ethtool.Ethtool) error) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return fmt.Errorf("open ethtool: %w", err)
	}
	defer e.Close()
	return do(e)
}

// driver names a port's driver.
func driver(port string) string {
	name := ""
	_ = with(func(e *ethtool.Ethtool) (err error) { name, err = e.DriverName(port); return err })
	if name == "" {
		return "of " + port
	}
	return name
}

// Driver names a port's driver, "" when it does not say.
func Driver(port string) string {
	name := ""
	_ = with(func(e *ethtool.Ethtool) (err error) { name, err = e.DriverName(port); return err })
	return name
}

// parameter is one field of a structure that the driver hands out and takes back whole.
func parameter[S any](at At, get func(*ethtool.Ethtool) (S, error), set func(*ethtool.Ethtool, S) error, field func(*S) (*uint32, uint32), f form) []place {
	return []place{{
		read: func() (r Reading, err error) {
			err = with(func(e *ethtool.Ethtool) error {
				s, err := get(e)
				if err != nil {
					return err
				}
				n, most := field(&s)
				r.Value, r.Most = f.text(*n), uint64(most)
				return nil
			})
			return r, err
		},
		write: func(v string) error {
			want, err := f.parse(v)
			if err != nil {
				return err
			}
			return with(func(e *ethtool.Ethtool) error {
				s, err := get(e)
				if err != nil {
					return err
				}
				n, most := field(&s)
				if most > 0 && want > most {
					return fmt.Errorf("driver %s takes at most %d, not %d", driver(at.Port), most, want)
				}
				*n = want
				return set(e, s)
			})
		},
	}}
}

// ring is a field of ethtool -g.
func ring(field func(*ethtool.Ring) (*uint32, uint32)) func(At) ([]place, error) {
	return func(at At) ([]place, error) {
		get := func(e *ethtool.Ethtool) (ethtool.Ring, error) { return e.GetRing(at.Port) }
		set := func(e *ethtool.Ethtool, r ethtool.Ring) error { _, err := e.SetRing(at.Port, r); return err }
		return parameter(at, get, set, field, number{}), nil
	}
}

// coalesce is a field of ethtool -c.
func coalesce(field func(*ethtool.Coalesce) *uint32, f form) func(At) ([]place, error) {
	return func(at At) ([]place, error) {
		get := func(e *ethtool.Ethtool) (ethtool.Coalesce, error) {
			c, err := e.GetCoalesce(at.Port)
			return c, err
		}
		set := func(e *ethtool.Ethtool, c ethtool.Coalesce) error {
			c.Cmd = ethtool.ETHTOOL_SCOALESCE
			_, err := e.SetCoalesce(at.Port, c)
			return err
		}
		return parameter(at, get, set, func(c *ethtool.Coalesce) (*uint32, uint32) { return field(c), 0 }, f), nil
	}
}

// pause is a field of ethtool -a.
func pause(field func(*ethtool.Pause) *uint32) func(At) ([]place, error) {
	return func(at At) ([]place, error) {
		get := func(e *ethtool.Ethtool) (ethtool.Pause, error) { return e.GetPause(at.Port) }
		set := func(e *ethtool.Ethtool, p ethtool.Pause) error { _, err := e.SetPause(at.Port, p); return err }
		return parameter(at, get, set, func(p *ethtool.Pause) (*uint32, uint32) { return field(p), 0 }, onOff{}), nil
	}
}

// queues is the number of channels, ethtool -l: combined ones where the driver has them, else both directions alike.
func queues(at At) ([]place, error) {
	get := func(e *ethtool.Ethtool) (ethtool.Channels, error) { return e.GetChannels(at.Port) }
	set := func(e *ethtool.Ethtool, c ethtool.Channels) error {
		if c.MaxCombined == 0 {
			c.TxCount = min(c.RxCount, c.MaxTx)
		}
		_, err := e.SetChannels(at.Port, c)
		return err
	}
	field := func(c *ethtool.Channels) (*uint32, uint32) {
		if c.MaxCombined > 0 {
			return &c.CombinedCount, c.MaxCombined
		}
		return &c.RxCount, c.MaxRx
	}
	return parameter(at, get, set, field, number{}), nil
}

// offload is a group of features that are one to ethtool -K. Those that the driver fixes are left out, unless all are.
func offload(names []string) func(At) ([]place, error) {
	return func(at At) ([]place, error) {
		var free, fixed []string
		err := with(func(e *ethtool.Ethtool) error {
			all, err := e.FeaturesWithState(at.Port)
			if err != nil {
				return err
			}
			for _, n := range names {
				s, ok := all[n]
				switch {
				case !ok:
				case s.Available && !s.NeverChanged:
					free = append(free, n)
				default:
					fixed = append(fixed, n)
				}
			}
			return nil
		})
		if err != nil {
			return nil, missing(names[0], at, err)
		}
		why := ""
		if len(free) == 0 {
			free, why = fixed, "fixed by driver "+driver(at.Port)
		}
		if len(free) == 0 {
			return nil, &Unsupported{Knob: names[0], Why: "this kernel does not have it"}
		}
		var out []place
		for _, n := range free {
			out = append(out, feature(at, n, why))
		}
		return out, nil
	}
}

func feature(at At, name, fixed string) place {
	state := func(e *ethtool.Ethtool) (ethtool.FeatureState, error) {
		all, err := e.FeaturesWithState(at.Port)
		return all[name], err
	}
	return place{
		read: func() (r Reading, err error) {
			r.Fixed = fixed
			err = with(func(e *ethtool.Ethtool) error {
				s, err := state(e)
				r.Value = "off"
				if s.Active {
					r.Value = "on"
				}
				if s.Active != s.Requested && fixed == "" {
					r.Fixed = "asked for otherwise, and held by another setting"
				}
				return err
			})
			return r, err
		},
		write: func(v string) error {
			on, err := onOff{}.parse(v)
			if err != nil {
				return err
			}
			return with(func(e *ethtool.Ethtool) error {
				s, err := state(e)
				if err != nil {
					return err
				}
				switch {
				case s.Active == (on == 1): // or what was asked for, and is held back, would be changed
					return nil
				case fixed != "":
					return &Unsupported{Why: fixed}
				}
				return e.Change(at.Port, map[string]bool{name: on == 1})
			})
		},
	}
}

// promisc is whether somebody asked for frames to every address (ip link set promisc); what programs ask for on their own
// is not in it.
func promisc(at At) ([]place, error) {
	return []place{{
		read: func() (Reading, error) {
			l, err := netlink.LinkByName(at.Port)
			if err != nil {
				return Reading{}, fmt.Errorf("find device %s: %w", at.Port, err)
			}
			if l.Attrs().RawFlags&unix.IFF_PROMISC != 0 {
				return Reading{Value: "on"}, nil
			}
			return Reading{Value: "off"}, nil
		},
		write: func(v string) error {
			l, err := netlink.LinkByName(at.Port)
			if err != nil {
				return fmt.Errorf("find device %s: %w", at.Port, err)
			}
			if v == "on" {
				return netlink.SetPromiscOn(l)
			}
			return netlink.SetPromiscOff(l)
		},
	}}, nil
}
