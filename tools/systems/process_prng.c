// The library bcryptprimitives.dll for Wine before 9, which lacks it: the standard library of Rust takes random bytes from
// it. Only tests under Wine use this one.
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(void *bytes, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(unsigned char *bytes, SIZE_T length) {
  return SystemFunction036(bytes, (ULONG)length);
}
