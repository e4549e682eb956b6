// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bufio"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
	"twopath/internal/process"
)

// ports makes two cabled ports in the namespace of the tests, with all the state a host's port may have.
func ports(t testing.TB) {
	t.Helper()
	nstest.Root(t)
	for _, c := range []string{
		"link add nic0 mtu 1400 type veth peer name nic1 mtu 1400",
		"link set nic0 up promisc on", "link set nic1 up",
		"addr add 10.9.0.1/24 brd + dev nic0", "addr add 10.9.1.1/24 dev nic0 label nic0:x", "addr add fd00:9::1/64 dev nic0 nodad",
		"addr add 10.9.2.1 peer 10.9.2.2 dev nic1",
		"route add 10.77.0.0/16 via 10.9.0.2 dev nic0 metric 7", "route add fd77::/64 via fd00:9::2 dev nic0",
		"neigh add 10.9.0.9 lladdr 02:00:00:00:00:99 dev nic0",
	} {
		ip(t, strings.Fields(c)...)
	}
	t.Cleanup(func() { ip(t, "link", "del", "nic0") })
	for path, v := range map[string]string{"ipv4/conf/nic0/rp_filter": "2", "ipv6/conf/nic1/accept_ra": "0"} {
		if err := os.WriteFile("/proc/sys/net/"+path, []byte(v), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := setGRO("nic1", true); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // link-local addresses appear
}

func ip(t testing.TB, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// snapshots reads the whole state of both ports where they are now.
func snapshots(t testing.TB) []device {
	t.Helper()
	var out []device
	for _, n := range []string{"nic0", "nic1"} {
		l, err := netlink.LinkByName(n)
		if err != nil {
			t.Fatal(err)
		}
		d, err := snapshot(l)
		if err != nil {
			t.Fatal(err)
		}
		for i := range d.Addresses {
			d.Addresses[i].Flags &^= unix.IFA_F_NODAD // set on restored ones: they were tested when first added
		}
		out = append(out, d)
	}
	return out
}

func same(t testing.TB, before, after []device) {
	t.Helper()
	for i := range before {
		if before[i].Index = after[i].Index; !reflect.DeepEqual(before[i], after[i]) {
			b, a := reflect.ValueOf(before[i]), reflect.ValueOf(after[i])
			for f := range b.NumField() {
				if !reflect.DeepEqual(b.Field(f).Interface(), a.Field(f).Interface()) {
					t.Errorf("%s: %s was %+v\nand is %+v", before[i].Name, b.Type().Field(f).Name, b.Field(f), a.Field(f))
				}
			}
		}
	}
}

func TestPairIsUsedAndGivenBack(t *testing.T) {
	ports(t)
	before := snapshots(t)
	r, err := NewPair(PairOptions{IF: "nic0", PeerIF: "nic1", MTU: 1500})
	if err != nil {
		t.Fatal(err)
	}
	if r.Kind != Pair || r.SUT.Name != "nic0" || r.Peer.Name != "nic1" || r.SUT.MAC.String() != before[0].MAC {
		t.Errorf("rig is %+v, %+v, %+v", r, r.SUT, r.Peer)
	}
	if _, err := netlink.LinkByName("nic0"); err == nil {
		t.Error("nic0 is still in the host's namespace")
	}
	if err := r.Peer.Do(func() error { return ping("198.18.0.1", "2001:2::1") }); err != nil {
		t.Error(err)
	}
	if err := r.SUT.SetNAPI(NAPIOptions{Threaded: true, CPUs: []int{0}}); err != nil {
		t.Error(err)
	}
	if err := r.SUT.SetRPS([]int{1}); err != nil {
		t.Error(err)
	}
	var ref *Refusal
	if _, err := NewPair(PairOptions{IF: "nic0", PeerIF: "nic1"}); !errors.As(err, &ref) || ref.ID != "other-namespace" {
		t.Errorf("second pair of the same ports: %v, want other-namespace", err)
	}
	if _, err := Up(UpOptions{}); !errors.As(err, &ref) || ref.ID != "in-use" {
		t.Errorf("rig up beside a pair: %v, want in-use", err)
	}
	if got, err := Recover(""); err != nil || len(got) != 0 {
		t.Errorf("Recover undid %v, %v while the owner lives", got, err)
	}
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
	same(t, before, snapshots(t))
	nothingLeft(t)
}

// ping sends one datagram to each address and expects the refusal of its port back: both directions work.
func ping(addrs ...string) error {
	for _, a := range addrs {
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		to := &unix.SockaddrInet6{Port: 9, Addr: netip.MustParseAddr(a).As16()}
		if err := unix.Connect(fd, to); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		if _, err := unix.Write(fd, []byte("?")); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2}); err != nil {
			return err
		}
		if _, err := unix.Read(fd, make([]byte, 8)); err != unix.ECONNREFUSED {
			return fmt.Errorf("%s: got %v, want the port's refusal", a, err)
		}
	}
	return nil
}

func nothingLeft(t testing.TB) {
	t.Helper()
	for _, dir := range []string{StateDir, netnsDir} {
		if _, err := os.Stat(dir); err == nil {
			entries, _ := os.ReadDir(dir)
			t.Errorf("%s is left with %v", dir, entries)
		}
	}
}

// owner plays a run that is killed at some point: it takes the ports and waits.
func pairOwner(kind string) {
	var err error
	switch kind {
	case "pair":
		_, err = NewPair(PairOptions{IF: "nic0", PeerIF: "nic1", MTU: 1500})
	case "remote":
		_, err = NewRemote(RemoteOptions{IF: "nic0", PeerMAC: "02:00:00:00:00:07"})
	case "up":
		_, err = Up(UpOptions{})
	}
	fmt.Println("ready", err)
	if kind != "up" {
		time.Sleep(time.Minute)
	}
}

// killedOwner runs an owner in a process of its own until it is ready, and kills it.
func killedOwner(t testing.TB, kind string) {
	t.Helper()
	c := reexec(kind)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "ready <nil>\n" || err != nil {
		t.Errorf("%s: %q, %v", kind, line, err)
	}
	if kind != "up" {
		c.Process.Kill()
	}
	c.Wait()
}

func TestRecoverAfterKill(t *testing.T) {
	for _, kind := range []string{"pair", "remote"} {
		t.Run(kind, func(t *testing.T) {
			ports(t)
			before := snapshots(t)
			killedOwner(t, kind)
			left, err := Leftovers("")
			if err != nil || len(left) != 1 || !left[0].Stale() || left[0].Kind != kind || left[0].Devices[0] != "nic0" {
				t.Errorf("leftovers %+v, %v, want one stale %s with nic0", left, err, kind)
			}
			got, err := Recover("")
			if err != nil || len(got) != 1 {
				t.Errorf("Recover: %+v, %v, want one", got, err)
			}
			same(t, before, snapshots(t))
			nothingLeft(t)
			if got, err := Recover(""); err != nil || len(got) != 0 {
				t.Errorf("second Recover: %+v, %v, want nothing", got, err)
			}
		})
	}
}

// A run is killed at every point: whatever part of the changes was made when only the journal is sure, Recover brings
// the ports back.
func TestRecoverFromEveryStep(t *testing.T) {
	for _, steps := range []int{0, 1, 2, 3, 4} {
		t.Run(fmt.Sprint(steps), func(t *testing.T) {
			ports(t)
			before := snapshots(t)
			dead := exec.Command("true")
			if err := dead.Run(); err != nil {
				t.Fatal(err)
			}
			j := &journal{Kind: "pair", Namespaces: []string{SUTNamespace, PeerNamespace}, Devices: snapshots(t),
				Owner: owner{PID: dead.Process.Pid, Start: 1}}
			j.Owner.Boot, _ = process.BootID()
			for i, n := range j.Namespaces {
				j.Devices[i].Namespace = n
			}
			if err := j.create(StateDir, "test"); err != nil {
				t.Fatal(err)
			}
			for i, n := range j.Namespaces { // two steps for each device
				if steps > 2*i {
					ns, err := newNamed(n)
					if err != nil {
						t.Fatal(err)
					}
					ns.Close()
				}
				if steps > 2*i+1 {
					ip(t, "link", "set", j.Devices[i].Name, "netns", n)
				}
			}
			if got, err := Recover(""); err != nil || len(got) != 1 {
				t.Errorf("Recover: %+v, %v, want one", got, err)
			}
			same(t, before, snapshots(t))
			nothingLeft(t)
		})
	}
}

func TestRecoverKeepsTheJournalWhenItCannot(t *testing.T) {
	ports(t)
	killedOwner(t, "pair")
	ip(t, "link", "add", "nic0", "type", "veth", "peer", "name", "other") // the name is taken meanwhile
	_, err := Recover("")
	if err == nil || !strings.Contains(err.Error(), "nic0") {
		t.Errorf("got %v, want an error about nic0", err)
	}
	if left, err := Leftovers(""); err != nil || len(left) != 1 {
		t.Errorf("journal is not kept: %v, %v", left, err)
	}
	ip(t, "link", "del", "other")
	if got, err := Recover(""); err != nil || len(got) != 1 {
		t.Errorf("Recover: %+v, %v, want one", got, err)
	}
	nothingLeft(t)
}

// Both ports were a veth pair that was deleted while a run had them: nothing can be put back, and nothing may be in the way
// of the next run.
func TestRecoverOfDevicesThatAreGone(t *testing.T) {
	ports(t)
	killedOwner(t, "pair")
	ip(t, "-n", SUTNamespace, "link", "del", "nic0")
	t.Cleanup(func() { ip(t, "link", "add", "nic0", "type", "veth", "peer", "name", "nic1") }) // the next clean-up deletes it
	if got, err := Recover(""); err != nil || len(got) != 1 {
		t.Errorf("Recover: %+v, %v, want one", got, err)
	}
	nothingLeft(t)
}

// A port that was renamed is still there, and its journal is all that knows what it was.
func TestRecoverKeepsTheJournalOfARenamedDevice(t *testing.T) {
	ports(t)
	killedOwner(t, "pair")
	ip(t, "-n", SUTNamespace, "link", "set", "nic0", "down")
	ip(t, "-n", SUTNamespace, "link", "set", "nic0", "name", "other")
	if _, err := Recover(""); err == nil || !strings.Contains(err.Error(), "nic0") || !strings.Contains(err.Error(), "rm ") {
		t.Errorf("got %v, want an error about nic0 with what to type", err)
	}
	ip(t, "-n", SUTNamespace, "link", "set", "other", "name", "nic0")
	if got, err := Recover(""); err != nil || len(got) != 1 {
		t.Errorf("Recover: %+v, %v, want one", got, err)
	}
	nothingLeft(t)
}

func TestRemoteUsesThePortInPlace(t *testing.T) {
	ports(t)
	before := snapshots(t)
	for _, peer := range []bool{false, true} {
		r, err := NewRemote(RemoteOptions{IF: "nic0", Peer: peer, PeerMAC: before[1].MAC})
		if err != nil {
			t.Fatal(err)
		}
		if (r.Peer != nil) != peer || (r.SUT != nil) == peer || len(r.Sides()) != 1 {
			t.Errorf("peer %t: sides %+v", peer, r)
		}
		s := r.Sides()[0]
		if now := snapshots(t)[0]; !now.has(s.IPv4.String()) || !now.has(s.IPv6.String()) || len(now.Neighbours) != 3 || !*now.GRO {
			t.Errorf("in place: %+v", now)
		}
		var ref *Refusal
		if _, err := NewRemote(RemoteOptions{IF: "nic0"}); !errors.As(err, &ref) || ref.ID != "in-use" {
			t.Errorf("second user: %v, want in-use", err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		same(t, before, snapshots(t))
		nothingLeft(t)
	}
}

func TestUpStaysUntilDown(t *testing.T) {
	nstest.Root(t)
	before := hostState(t)
	killedOwner(t, "up")
	st, err := Status("")
	if err != nil || st == nil || st.Alive || !st.Persistent {
		t.Fatalf("status %+v, %v", st, err)
	}
	if got, err := Recover(""); err != nil || len(got) != 0 {
		t.Errorf("Recover took %v, %v away", got, err)
	}
	ip(t, "-n", SUTNamespace, "link", "show", "sut0")
	ip(t, "-n", PeerNamespace, "link", "show", "peer0")
	var ref *Refusal
	if _, err := Up(UpOptions{}); !errors.As(err, &ref) || ref.ID != "in-use" {
		t.Errorf("second up: %v, want in-use", err)
	}
	for i, want := range []bool{true, false} {
		if got, err := Down(""); got != want || err != nil {
			t.Errorf("down %d: %t, %v, want %t", i, got, err, want)
		}
	}
	if st, err := Status(""); st != nil || err != nil {
		t.Errorf("status after down: %+v, %v", st, err)
	}
	sameHost(t, before)
}

func TestHalfWrittenJournalsAreCleared(t *testing.T) {
	nstest.Root(t)
	if err := os.MkdirAll(StateDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(StateDir, ".journal-123"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Recover(""); err != nil || len(got) != 0 {
		t.Errorf("Recover: %v, %v", got, err)
	}
	nothingLeft(t)
}

func TestStraysAreReported(t *testing.T) {
	nstest.Root(t)
	ns, err := newNamed(SUTNamespace)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	got, err := Strays("")
	if err != nil || len(got) != 1 || !strings.Contains(got[0].What, SUTNamespace) || got[0].Cure == "" {
		t.Errorf("got %+v, %v, want the namespace", got, err)
	}
	if err := removeNamed(SUTNamespace); err != nil {
		t.Error(err)
	}
	if _, err := Up(UpOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := Strays(""); err != nil || len(got) != 0 {
		t.Errorf("what rig up made is said to be stray: %+v, %v", got, err)
	}
	if _, err := Down(""); err != nil {
		t.Error(err)
	}
	nothingLeft(t)
}
