// SPDX-License-Identifier: Apache-2.0

package rig

// txChecksum is the kernel's name of the offload that leaves transport checksums to the device.
const txChecksum = "tx-checksum-ip-generic"

// ComputeChecksums has the kernel of a veth's end compute transport checksums itself instead of leaving them to the device,
// which never does: a frame then looks as on a cable. restore switches the offload on again.
func (s *Side) ComputeChecksums() (restore func() error, err error) {
	if err := s.SetFeatures(map[string]bool{txChecksum: false}); err != nil {
		return nil, err
	}
	return func() error { return s.SetFeatures(map[string]bool{txChecksum: true}) }, nil
}
