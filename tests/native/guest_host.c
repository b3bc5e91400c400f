/* Opens plug-ins by dlopen, each with the MPI that it is linked to, and runs one after the other: `guest_host PLUG-IN...`.
 * With HOST_OF_MPI a program of its own MPI first; the plug-ins then look for what they need among their own first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#ifdef HOST_OF_MPI
#include "guest_plugin.c"
enum { CT__HOW = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND };
#else
enum { CT__HOW = RTLD_NOW | RTLD_LOCAL };
#endif

int main(int argc, char **argv)
{
#ifdef HOST_OF_MPI
    run();
#endif
    for (int i = 1; i < argc; i++) {
        void *plugin = dlopen(argv[i], CT__HOW);
        if (plugin == NULL) {
            puts(dlerror());
            return 9;
        }
        void (*start)(void);
        *(void **)&start = dlsym(plugin, "run");
        start();
    }
    return 0;
}
