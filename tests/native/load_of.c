/* Prints what load.c tells of a second on a machine that a directory stands for: load_of ROOT PID ... */
#include "load.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    pid_t pids[64];
    int count = 0;
    for (int i = 2; i < argc && count < 64; i++)
        pids[count++] = (pid_t)atoi(argv[i]);
    ct_load *load = ct_load_open(argv[1], pids, count, true, 0, 100.0);
    if (load == NULL)
        return 1;
    ct_load_begin(load, 100.0);
    printf("begun\n");
    fflush(stdout);
    getchar();
    ct_load_shares shares;
    ct_load_end(load, 101.0, &shares);
    double values[] = {shares.waited, shares.others, shares.stolen, shares.throttled, shares.pressure};
    const char *names[] = {"waited", "others", "stolen", "throttled", "pressure"};
    for (int i = 0; i < 5; i++)
        if (values[i] >= 0.0)
            printf("%s=%.6g@0 ", names[i], values[i]);
    printf("\n");
    ct_load_close(load);
    return 0;
}
