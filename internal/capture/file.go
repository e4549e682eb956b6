// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// Limits of a capture, both of what the kernel's memory is asked to hold.
const (
	MaxFrames = 1 << 24
	MaxBytes  = 1 << 30 // of all frames together
	minFrame  = 14
	maxFrame  = 3408 // of XDP live frames, without FCS
)

// Options say what can be sent.
type Options struct {
	MTU int // bytes of payload a frame may have; 0 means 1500
}

// Capture is what of a file can be sent, and the count of what cannot.
type Capture struct {
	Path   string
	SHA256 string // of the file, hexadecimal
	Format string // "pcap", "pcapng"
	Links  []string
	// Frames are whole Ethernet frames without FCS, in the order of the file.
	Frames [][]byte
	// At is each frame's time after the first one's. It never falls: a record that is earlier than the one before goes with it.
	At []time.Duration

	Records uint64 // in the file; len(Frames) and the counts below add up to it
	Skipped Skipped
	// Backwards are records earlier than one before them; they are sent, in the order of the file.
	Backwards uint64
}

// Skipped counts records that are not sent, by reason.
type Skipped struct {
	Cut         uint64 `json:"cut"`         // less was captured than was on the wire
	Empty       uint64 `json:"empty"`       // nothing was captured
	Short       uint64 `json:"short"`       // ends inside the link header
	TooLong     uint64 `json:"too_long"`    // over the MTU, as segments merged by offloads are, or over what a live frame holds
	NotEthernet uint64 `json:"no_ethernet"` // what its link layer carries has no EtherType
}

// Sum is the number of records left out.
func (s Skipped) Sum() uint64 { return s.Cut + s.Empty + s.Short + s.TooLong + s.NotEthernet }

// Bytes are those of all frames, without FCS.
func (c *Capture) Bytes() (n uint64) {
	for _, f := range c.Frames {
		n += uint64(len(f))
	}
	return n
}

// Length is the time between the first and the last frame.
func (c *Capture) Length() time.Duration { return c.At[len(c.At)-1] }

// FileError is a capture that cannot be used: which, why, and what to do.
type FileError struct {
	Path  string
	Cause string
	Cure  string
	Err   error // (optional) what was underneath
}

func (e *FileError) Error() string {
	s := fmt.Sprintf("capture %s: %s", e.Path, e.Cause)
	if e.Cure != "" {
		s += "; " + e.Cure
	}
	return s
}

func (e *FileError) Unwrap() error { return e.Err }

// Read reads a whole capture file. A file that cannot be used is a *FileError.
func Read(path string, o Options) (*Capture, error) {
	f, err := os.Open(path)
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			return nil, &FileError{Path: path, Cause: p.Err.Error(), Err: err}
		}
		return nil, &FileError{Path: path, Cause: err.Error(), Err: err}
	}
	defer f.Close()
	sum := sha256.New()
	c, err := Decode(path, io.TeeReader(f, sum), o)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(sum, f); err != nil {
		return nil, &FileError{Path: path, Cause: err.Error(), Err: err}
	}
	c.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return c, nil
}

// Lengths in a pcap file: its header, and that of a record.
const (
	pcapHeader = 24
	pcapRecord = 16
)

// counter counts what was read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// packets is what both readers of the library have in common.
type packets interface {
	ReadPacketData() ([]byte, gopacket.CaptureInfo, error)
}

// Decode reads a capture from r; path only names it in errors.
func Decode(path string, r io.Reader, o Options) (*Capture, error) {
	if o.MTU == 0 {
		o.MTU = 1500
	}
	c := &Capture{Path: path}
	all := &counter{r: r}
	src, link, err := c.open(bufio.NewReaderSize(all, 1<<16))
	if err != nil {
		return nil, err
	}
	a := adder{c: c, mtu: o.MTU}
	whole := int64(pcapHeader) // bytes of the records read
	for {
		data, info, err := src.ReadPacketData()
		if errors.Is(err, io.EOF) && c.Format == "pcap" && all.n != whole {
			err = io.ErrUnexpectedEOF // the library takes a record without its data for the end
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, c.broken(err)
		}
		c.Records++
		whole += pcapRecord + int64(len(data))
		l := link
		if len(info.AncillaryData) > 0 {
			if t, ok := info.AncillaryData[0].(layers.LinkType); ok {
				l = t
			}
		}
		if err := a.add(data, info, l); err != nil {
			return nil, err
		}
	}
	if len(c.Frames) == 0 {
		return nil, c.nothing()
	}
	return c, nil
}

// open tells the formats apart by their magic numbers.
func (c *Capture) open(r *bufio.Reader) (packets, layers.LinkType, error) {
	magic, err := r.Peek(4)
	if err != nil {
		if len(magic) == 0 {
			return nil, 0, &FileError{Path: c.Path, Cause: "the file is empty", Cure: "record one with tcpdump -w FILE", Err: err}
		}
		return nil, 0, &FileError{Path: c.Path, Cause: fmt.Sprintf("%d bytes are no capture", len(magic)), Cure: "record one with tcpdump -w FILE", Err: err}
	}
	foreign := func(what string) (packets, layers.LinkType, error) {
		return nil, 0, &FileError{Path: c.Path, Cause: what, Cure: "convert it: editcap -F pcapng IN OUT"}
	}
	switch {
	case magic[0] == 0x1f && magic[1] == 0x8b:
		return nil, 0, &FileError{Path: c.Path, Cause: "it is compressed with gzip", Cure: "unpack it: gunzip -k FILE"}
	case bytes.Equal(magic, []byte("snoo")):
		return foreign("it is a snoop file, not pcap or pcapng")
	case binary.BigEndian.Uint32(magic) == 0x0a0d0d0a: // the same in both orders
		c.Format = "pcapng"
		ng, err := pcapgo.NewNgReader(r, pcapgo.NgReaderOptions{WantMixedLinkType: true, SkipUnknownVersion: true})
		if err != nil {
			return nil, 0, c.broken(err)
		}
		return ng, 0, nil
	}
	for _, known := range []uint32{0xa1b2c3d4, 0xa1b23c4d} { // us, ns
		if binary.BigEndian.Uint32(magic) == known || binary.LittleEndian.Uint32(magic) == known {
			c.Format = "pcap"
			p, err := pcapgo.NewReader(r)
			if err != nil {
				return nil, 0, c.broken(err)
			}
			return p, p.LinkType(), nil
		}
	}
	return foreign(fmt.Sprintf("it begins with %x, which is neither pcap nor pcapng", magic))
}

// broken is the error of a file that ends or goes wrong within a record.
func (c *Capture) broken(err error) error {
	cause := fmt.Sprintf("record %d: %v", c.Records+1, err)
	cure := "repair it: editcap IN OUT keeps what can be read"
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		cause = fmt.Sprintf("it ends within record %d: the file was cut", c.Records+1)
		cure = fmt.Sprintf("copy it again, or keep the %d whole records: editcap IN OUT", c.Records)
		if c.Records == 0 {
			cause, cure = "it ends before its first record: the file was cut", "copy it again"
		}
	}
	return &FileError{Path: c.Path, Cause: cause, Cure: cure, Err: err}
}

// nothing is the error of a file without a single frame to send.
func (c *Capture) nothing() error {
	if c.Records == 0 {
		return &FileError{Path: c.Path, Cause: "it has no records", Cure: "record traffic with tcpdump -w FILE"}
	}
	s := c.Skipped
	cure := "record it again"
	switch {
	case s.Cut == c.Records:
		cure = "record whole frames: tcpdump -s 0"
	case s.TooLong > 0:
		cure = "record with offloads off (ethtool -K IF tso off gso off gro off), or on a link of the same MTU"
	}
	return &FileError{Path: c.Path, Cause: fmt.Sprintf("none of its %d records can be sent (%s)", c.Records, s), Cure: cure}
}

// String lists what was left out, for people; empty when nothing was.
func (s Skipped) String() string {
	var b bytes.Buffer
	for _, part := range []struct {
		n    uint64
		what string
	}{{s.Cut, "cut by the snap length"}, {s.Empty, "empty"}, {s.Short, "shorter than their link header"}, {s.TooLong, "too long"},
		{s.NotEthernet, "without an EtherType"}} {
		if part.n == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d %s", part.n, part.what)
	}
	return b.String()
}
