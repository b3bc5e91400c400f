/* The host of plug-ins as a program of an MPI of its own. */
#define HOST_OF_MPI
#include "guest_host.c"
