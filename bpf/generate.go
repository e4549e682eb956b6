// SPDX-License-Identifier: Apache-2.0

package bpf

// The objects are built by clang and committed; `go generate ./bpf` makes them again, byte for byte (clang 14).
// bpf2go is pinned in the module tools, so that the main go.mod has no tool line and an old go command can still read it.

//go:generate -command bpf2go go -C ../tools tool bpf2go -go-package bpf -output-dir ../bpf -target bpfel -tags linux -cflags "-O2 -mcpu=v3 -Wall -Werror -I../bpf/c"
//go:generate bpf2go redirect ../bpf/c/redirect.bpf.c
//go:generate bpf2go drop ../bpf/c/drop.bpf.c
//go:generate bpf2go pass ../bpf/c/pass.bpf.c
//go:generate bpf2go -type pace generate ../bpf/c/generate.bpf.c
//go:generate bpf2go replay ../bpf/c/replay.bpf.c
//go:generate bpf2go marked ../bpf/c/marked.bpf.c
//go:generate bpf2go sink ../bpf/c/sink.bpf.c
//go:generate bpf2go steer ../bpf/c/steer.bpf.c
//go:generate bpf2go echometer ../bpf/c/echometer.bpf.c
//go:generate bpf2go reflect ../bpf/c/reflect.bpf.c
//go:generate bpf2go ask ../bpf/c/ask.bpf.c
//go:generate bpf2go cpumeter ../bpf/c/cpumeter.bpf.c
//go:generate bpf2go attacherror ../bpf/c/attacherror.bpf.c
