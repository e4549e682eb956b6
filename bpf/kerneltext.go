// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bytes"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// kernelText repeats a refused attach while listening to the tracepoint that carries the driver's sentence. It returns
// "" when there is none or it cannot be had. Should the second attempt succeed, it is undone.
func kernelText(o link.XDPOptions) string {
	spec, err := loadAttacherror()
	if err != nil {
		return ""
	}
	if err := setVariables(spec, map[string]any{attacherrorVarTgid: uint32(os.Getpid())}); err != nil {
		return ""
	}
	var obj attacherrorObjects
	if err := spec.LoadAndAssign(&obj, &ebpf.CollectionOptions{}); err != nil {
		return "" // before 6.5
	}
	defer obj.Close()
	trace, err := link.AttachTracing(link.TracingOptions{Program: obj.AttachFailed})
	if err != nil {
		return ""
	}
	defer trace.Close()
	if l, err := link.AttachXDP(o); err == nil {
		l.Close()
		return ""
	}
	var r attacherrorAttachRefusal
	if err := obj.Refusal.Lookup(uint32(0), &r); err != nil {
		return ""
	}
	text := make([]byte, len(r.Text))
	for i, c := range r.Text {
		text[i] = byte(c)
	}
	text, _, _ = bytes.Cut(text, []byte{0})
	return string(text)
}
