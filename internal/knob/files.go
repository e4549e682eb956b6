// SPDX-License-Identifier: Apache-2.0

package knob

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"twopath/compare"
	"twopath/internal/namespace"
)

// readFile returns a setting's text without the space around it.
func readFile(path string) (string, error) {
	b, err := os.ReadFile(path)
	return strings.TrimSpace(string(b)), err
}

func writeFile(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// processNS is the network namespace of the process's first thread, whichever one the calling thread is in.
const processNS = "/proc/self/ns/net"

// sysctl is a file below /proc/sys. The machine's network settings are seen, or can be written, in the first network
// namespace only (net_core_table in net/core/sysctl_net_core.c), so that is entered where the calling thread's will not do.
func sysctl(name string) func(At) ([]place, error) {
	return func(at At) ([]place, error) {
		path := at.Root + "/proc/sys/" + name
		in := func(do func() error) error {
			err := do()
			if at.Root != "" || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
				return err
			}
			for _, other := range []string{processNS, namespace.First} {
				ns, openErr := os.Open(other)
				if openErr != nil {
					continue // a container's first process, or one with more privileges
				}
				inside := namespace.In(ns, do)
				ns.Close()
				if inside == nil {
					return nil
				}
			}
			return err
		}
		return []place{{
			read: func() (r Reading, err error) {
				err = in(func() (err error) { r.Value, err = readFile(path); return err })
				if errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(name, "net/") {
					err = &Unsupported{Why: "not shown in this network namespace, only in the host's own", Err: err}
				}
				return r, err
			},
			write: func(v string) error { return in(func() error { return writeFile(path, v) }) },
		}}, nil
	}
}

// governors are the files of each CPU's frequency governor.
func governors(at At) ([]place, error) {
	paths, err := filepath.Glob(at.Root + "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
	if err != nil || len(paths) == 0 {
		return nil, errors.Join(err, &Unsupported{Knob: "governor", Why: "the kernel does not set the CPUs' frequency here"})
	}
	slices.SortFunc(paths, func(a, b string) int { return trailing(a, "/cpu") - trailing(b, "/cpu") })
	var out []place
	for _, p := range paths {
		out = append(out, place{read: func() (Reading, error) { v, err := readFile(p); return Reading{Value: v}, err },
			write: func(v string) error { return writeFile(p, v) }})
	}
	return out, nil
}

// trailing is the number after the last prefix in a path, for sorting.
func trailing(path, prefix string) int {
	i := strings.LastIndex(path, prefix)
	if i < 0 {
		return 0
	}
	digits := path[i+len(prefix):]
	if j := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); j >= 0 {
		digits = digits[:j]
	}
	n, _ := strconv.Atoi(digits)
	return n
}

// portOpen opens /sys/class/net/PORT/ATTR as the calling thread's namespace has it. Who may not mount a sysfs looks at the
// one there is, if that is of the same namespace.
func portOpen(at At, attr string, flags int) (*os.File, error) {
	path := at.Root + "/sys/class/net/" + at.Port + "/" + attr
	if at.Root != "" {
		return os.OpenFile(path, flags, 0)
	}
	f, err := namespace.Sysfs(at.Port, attr, flags)
	if !errors.Is(err, os.ErrPermission) {
		return f, err
	}
	l, linkErr := netlink.LinkByName(at.Port)
	index, readErr := readFile("/sys/class/net/" + at.Port + "/ifindex")
	if linkErr != nil || readErr != nil || index != strconv.Itoa(l.Attrs().Index) {
		return nil, err
	}
	return os.OpenFile(path, flags, 0)
}

func portRead(at At, attr string) (string, error) {
	f, err := portOpen(at, attr, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<16))
	return strings.TrimSpace(string(b)), err
}

func portWrite(at At, attr, value string) error {
	f, err := portOpen(at, attr, os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// portList lists a directory of a port's, what begins with prefix, by the number after it.
func portList(at At, attr, prefix string) ([]string, error) {
	f, err := portOpen(at, attr, os.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, prefix) })
	slices.SortFunc(names, func(a, b string) int { return trailing("/"+a, "/"+prefix) - trailing("/"+b, "/"+prefix) })
	return names, err
}

// portFile is a file of the port's in sysfs.
func portFile(attr string) func(At) ([]place, error) {
	return func(at At) ([]place, error) {
		return []place{{read: func() (Reading, error) { v, err := portRead(at, attr); return Reading{Value: v}, err },
			write: func(v string) error { return portWrite(at, attr, v) }}}, nil
	}
}

// threaded says whether NAPI runs in threads: 0, 1, and since Linux 6.18 2, threads that busy-poll.
func threaded(at At) ([]place, error) {
	words := []string{"off", "on", "busy"}
	return []place{{
		read: func() (Reading, error) {
			v, err := portRead(at, "threaded")
			if errors.Is(err, unix.EINVAL) { // dev_get_threaded: neither, as of a device without NAPI
				return Reading{}, &Unsupported{Why: "the port has no NAPI", Err: err}
			}
			if n, atoi := strconv.Atoi(v); atoi == nil && n >= 0 && n < len(words) {
				v = words[n]
			}
			return Reading{Value: v}, err
		},
		write: func(v string) error { return portWrite(at, "threaded", strconv.Itoa(max(0, slices.Index(words, v)))) },
	}}, nil
}

// queueMask is a CPU mask of each receive or transmit queue.
func queueMask(prefix, attr string) func(At) ([]place, error) {
	return func(at At) ([]place, error) {
		queues, err := portList(at, "queues", prefix)
		if err != nil {
			return nil, fmt.Errorf("list queues: %w", err)
		}
		var out []place
		for _, q := range queues {
			file := "queues/" + q + "/" + attr
			out = append(out, place{
				read: func() (Reading, error) {
					mask, err := portRead(at, file)
					if errors.Is(err, fs.ErrNotExist) && attr == "xps_cpus" {
						err = &Unsupported{Why: "one transmit queue leaves nothing to choose", Err: err}
					}
					if err != nil {
						return Reading{}, err
					}
					cpus, err := parseMask(mask)
					return Reading{Value: compare.FormatCPUs(cpus)}, err
				},
				write: func(v string) error {
					cpus, err := compare.ParseCPUList(v)
					if err != nil {
						return err
					}
					return portWrite(at, file, formatMask(cpus))
				},
			})
		}
		if len(out) == 0 {
			return nil, &Unsupported{Knob: attr, Why: "the port shows no queues"}
		}
		return out, nil
	}
}

// interrupts are the message-signalled interrupts of the port, or of the bus device that it is a function of (virtio).
func interrupts(at At) ([]place, error) {
	none := &Unsupported{Knob: "irq_cpus", Why: "the port has no interrupts of its own"}
	numbers, err := portList(at, "device/msi_irqs", "")
	if errors.Is(err, fs.ErrNotExist) {
		numbers, err = portList(at, "device/../msi_irqs", "")
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(numbers) == 0 {
		return nil, none
	}
	if err != nil {
		return nil, fmt.Errorf("list interrupts: %w", err)
	}
	var out []place
	for _, n := range numbers {
		path := at.Root + "/proc/irq/" + n + "/smp_affinity_list"
		if _, err := os.Stat(path); err != nil {
			continue // a vector that is not in use
		}
		out = append(out, place{
			read: func() (Reading, error) {
				v, err := readFile(path)
				return Reading{Value: v}, err
			},
			write: func(v string) error {
				if err := writeFile(path, v); err != nil {
					return fmt.Errorf("interrupt %s to CPUs %s: %w", n, v, err)
				}
				return nil
			},
		})
	}
	if len(out) == 0 {
		return nil, none
	}
	return out, nil
}
