// A stand-in for bcryptprimitives.dll, which Go programs load at their start and Wine 8 does not have.
// run.sh builds it and puts it into its own Wine prefix, nowhere else.
#include <windows.h>

// SystemFunction036 is RtlGenRandom of advapi32: the same random bytes by an older name.
BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length)
{
	return SystemFunction036(data, (ULONG)length);
}
