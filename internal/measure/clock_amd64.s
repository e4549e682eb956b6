// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func Ticks() uint64
//
// RDTSC alone may be executed before earlier loads have completed. LFENCE waits for them first (Intel SDM vol. 2,
// RDTSC; AMD APM vol. 3 with LFENCE dispatch-serialising, which Linux sets). RDTSCP would do the same, but is a
// CPUID feature of its own and clobbers CX with a CPU number nobody here reads.
TEXT ·Ticks(SB), NOSPLIT, $0-8
	LFENCE
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET
