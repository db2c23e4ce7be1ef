/* What kernels and the linker expect of a C library, for Windows, where there may be none.
   Linked into every library of kernels; of the system it takes two functions of kernel32. */

__declspec(dllimport) int SwitchToThread(void);
__declspec(dllimport) void Sleep(unsigned milliseconds);

int _fltused; /* the linker wants it where there are floats */

int sched_yield(void)
{
    SwitchToThread();
    return 0;
}

int usleep(unsigned microseconds)
{
    Sleep((microseconds + 999) / 1000);
    return 0;
}

int DllMainCRTStartup(void *library, unsigned reason, void *reserved)
{
    return 1;
}

/* Called before rax bytes of stack are taken: touches each of their pages, so that the system makes it. */
__asm__(".globl ___chkstk_ms\n"
        "___chkstk_ms:\n"
        "    pushq %rax\n"
        "    pushq %rcx\n"
        "    leaq 24(%rsp), %rcx\n"
        "1:  cmpq $4096, %rax\n"
        "    jbe 2f\n"
        "    subq $4096, %rcx\n"
        "    orq $0, (%rcx)\n"
        "    subq $4096, %rax\n"
        "    jmp 1b\n"
        "2:  subq %rax, %rcx\n"
        "    orq $0, (%rcx)\n"
        "    popq %rcx\n"
        "    popq %rax\n"
        "    retq\n");
