#include "textflag.h"

// func skipAVX2(p *byte, i, n int, simple *[256]bool) (at int, high, escapes uint64)
//
// Goes from p[i] on in blocks of 32 bytes, over plain text and escapes of two bytes, and stops at the first quote,
// control character or other backslash, or where less than a block is left before n. at is where it stopped; high is
// not 0 if one of the bytes read has its high bit set, escapes not 0 if an escape was passed.
TEXT ·skipAVX2(SB), NOSPLIT, $0-56
	MOVQ p+0(FP), SI
	MOVQ i+8(FP), AX
	MOVQ n+16(FP), CX
	MOVQ simple+24(FP), DI
	XORQ DX, DX
	SUBQ $32, CX
	MOVQ $0x2222222222222222, R8
	MOVQ R8, X0
	VPBROADCASTQ X0, Y0
	MOVQ $0x5c5c5c5c5c5c5c5c, R8
	MOVQ R8, X1
	VPBROADCASTQ X1, Y1
	MOVQ $0x1f1f1f1f1f1f1f1f, R8
	MOVQ R8, X2
	VPBROADCASTQ X2, Y2
	VPXOR Y7, Y7, Y7

block:
	CMPQ AX, CX
	JGT  done
	VMOVDQU (SI)(AX*1), Y3
	VPOR Y3, Y7, Y7
	VPCMPEQB Y0, Y3, Y4
	VPCMPEQB Y1, Y3, Y5
	VPMAXUB Y2, Y3, Y6
	VPCMPEQB Y2, Y6, Y6 // the maximum of it and 0x1f is 0x1f: a control character
	VPOR Y4, Y5, Y4
	VPOR Y4, Y6, Y4
	VPMOVMSKB Y4, R9
	TESTL R9, R9
	JNZ  found
	ADDQ $32, AX
	JMP  block

found:
	BSFL R9, R9
	ADDQ R9, AX
	CMPQ AX, CX
	JGT  done // perhaps the last bytes: for the caller
	MOVBLZX (SI)(AX*1), R10
	CMPB R10, $0x5c
	JNE  done
	MOVBLZX 1(SI)(AX*1), R10
	MOVBLZX (DI)(R10*1), R10
	TESTB R10, R10
	JZ   done
	MOVQ $1, DX
	ADDQ $2, AX
	JMP  block

done:
	VPMOVMSKB Y7, R10
	VZEROUPPER
	MOVQ AX, at+32(FP)
	MOVQ R10, high+40(FP)
	MOVQ DX, escapes+48(FP)
	RET
