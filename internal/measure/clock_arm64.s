// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func Ticks() uint64
//
// The virtual counter may be read speculatively, ahead of earlier instructions; ISB keeps it in order (Arm ARM,
// "Generic Timer": the same pair the kernel's vDSO uses).
TEXT ·Ticks(SB), NOSPLIT, $0-8
	ISB  $15
	MRS  CNTVCT_EL0, R0
	MOVD R0, ret+0(FP)
	RET
