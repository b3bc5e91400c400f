/* Communicators of every origin, and what a program may do with them while collectives go on. */
#include "guest_cases.h"

static long ct__free(MPI_Comm *comm)
{
    long sum = *comm == MPI_COMM_NULL ? 0 : exchange(*comm);
    if (*comm != MPI_COMM_NULL)
        MPI_Comm_free(comm);
    return sum;
}

static long ct__create_group(int rank, int size)
{
    MPI_Group world, odd;
    MPI_Comm comm = MPI_COMM_NULL;
    int range[1][3] = {{0, size - 1, 2}};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, range, &odd);
    if (rank % 2 == 0)
        MPI_Comm_create_group(MPI_COMM_WORLD, odd, 5, &comm);
    MPI_Group_free(&odd);
    MPI_Group_free(&world);
    return ct__free(&comm);
}

static long ct__create_empty_group(int rank, int size)
{
    MPI_Comm comm, first;
    MPI_Group world, part;
    (void)size;
    MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, (int[]){0}, &part);
    MPI_Comm_create(MPI_COMM_WORLD, part, &first);
    MPI_Group_free(&part);
    MPI_Group_free(&world);
    return (comm == MPI_COMM_NULL) + (first == MPI_COMM_NULL) * 2 + ct__free(&first) + rank;
}

static long ct__split(int rank, int size)
{
    MPI_Comm reversed, some, node;
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : rank % 2, rank, &some);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    long sum = ct__free(&reversed) + 3 * ct__free(&some);
    return sum + 7 * ct__free(&node);
}

static long ct__neighbours_on(MPI_Comm comm, int in)
{
    int sent[2 * MOST_RANKS], got[2 * MOST_RANKS], rank;
    int counts[MOST_RANKS], places[MOST_RANKS];
    MPI_Aint bytes[MOST_RANKS];
    MPI_Datatype types[MOST_RANKS];
    MPI_Request request;
    long sum = 0;
    MPI_Comm_rank(comm, &rank);
    for (int i = 0; i < MOST_RANKS; i++)
        counts[i] = 1, places[i] = i, bytes[i] = i * (int)sizeof(int), types[i] = MPI_INT;
    for (int i = 0; i < 2 * MOST_RANKS; i++)
        sent[i] = 10 * rank + i, got[i] = -2;
    for (int round = 0; round < 3; round++) {
        MPI_Neighbor_allgather(sent, 1, MPI_INT, got, 1, MPI_INT, comm);
        sum = digest(sum, got, in);
        MPI_Neighbor_alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, comm);
        sum = digest(sum, got, in);
        MPI_Neighbor_allgatherv(sent, 1, MPI_INT, got, counts, places, MPI_INT, comm);
        sum = digest(sum, got, in);
        MPI_Neighbor_alltoallv(sent, counts, places, MPI_INT, got, counts, places, MPI_INT, comm);
        sum = digest(sum, got, in);
        MPI_Neighbor_alltoallw(sent, counts, bytes, types, got, counts, bytes, types, comm);
        sum = digest(sum, got, in);
        MPI_Ineighbor_alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        sum = digest(sum, got, in);
    }
    return sum + exchange(comm);
}

static long ct__topologies(int rank, int size)
{
    MPI_Comm cart, line, graph, adjacent;
    int periodic = 1, keep = 0, next = (rank + 1) % size, before = (rank + size - 1) % size;
    int index[MOST_RANKS], edges[2 * MOST_RANKS];
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &cart);
    MPI_Cart_sub(cart, &keep, &line);
    for (int i = 0; i < size; i++)
        index[i] = 2 * i + 2, edges[2 * i] = (i + 1) % size, edges[2 * i + 1] = (i + size - 1) % size;
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, &periodic, 1, &next, &periodic, MPI_INFO_NULL, 0, &adjacent);
    long sum = ct__neighbours_on(cart, 2) + ct__neighbours_on(graph, 2) + ct__neighbours_on(adjacent, 1) + exchange(line);
    MPI_Comm_free(&line);
    MPI_Comm_free(&adjacent);
    MPI_Comm_free(&graph);
    MPI_Comm_free(&cart);
    return sum;
}

static long ct__across(MPI_Comm inter, int low, int rank)
{
    int mine = rank + 5, got[MOST_RANKS] = {0}, far, counts[MOST_RANKS], places[MOST_RANKS];
    int root = !low ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    long sum = 0;
    MPI_Comm_remote_size(inter, &far);
    for (int i = 0; i < MOST_RANKS; i++)
        counts[i] = 1, places[i] = i;
    for (int round = 0; round < ROUNDS; round++) {
        int word = low && rank == 0 ? round + 40 : 0;
        MPI_Bcast(&word, 1, MPI_INT, root, inter);
        MPI_Allreduce(&mine, got, 1, MPI_INT, MPI_SUM, inter);
        sum = digest(sum + word, got, 1);
        MPI_Allgather(&mine, 1, MPI_INT, got, 1, MPI_INT, inter);
        sum = digest(sum, got, far);
        MPI_Allgatherv(&mine, 1, MPI_INT, got, counts, places, MPI_INT, inter);
        sum = digest(sum, got, far);
        MPI_Gather(&mine, 1, MPI_INT, got, 1, MPI_INT, root, inter);
        sum = digest(sum, got, low && rank == 0 ? far : 0);
        MPI_Alltoallv((int[MOST_RANKS]){mine, mine + 1, mine + 2}, counts, places, MPI_INT, got, counts, places, MPI_INT, inter);
        sum = digest(sum, got, far);
        MPI_Barrier(inter);
    }
    return sum;
}

static long ct__intercommunicator(int rank, int size)
{
    int low = rank == 0 || size < 3;
    MPI_Comm half, inter, merged;
    if (size < 2)
        return 0;
    if (size == 2)
        low = rank == 0;
    MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? 1 : 0, 9, &inter);
    int own;
    MPI_Comm_rank(half, &own);
    long sum = ct__across(inter, low, own);
    MPI_Intercomm_merge(inter, low, &merged);
    sum += ct__free(&merged);
    MPI_Comm_free(&inter);
    return sum + ct__free(&half);
}

#ifndef OPEN_MPI /* which crashes for it by itself */
static long ct__freed_with_a_call_under_way(int rank, int size)
{
    long sum = 0;
    for (int round = 0; round < 6; round++) {
        MPI_Comm comm;
        MPI_Request requests[2];
        int got[2] = {0, 0}, word = rank == 0 ? round : -1;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Allreduce(&rank, got, 1, MPI_INT, MPI_SUM, comm);
        MPI_Iallreduce(&rank, got + 1, 1, MPI_INT, MPI_SUM, comm, &requests[0]);
        MPI_Ibcast(&word, 1, MPI_INT, 0, comm, &requests[1]);
        MPI_Comm_free(&comm);
        sum += exchange_once(MPI_COMM_WORLD, round);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        sum = digest(sum + word, got, 2);
    }
    return sum + size;
}

#endif

/* Copies are on their way while collectives of the parent, of another communicator, and the first of a new one go on. */
static long ct__copied_meanwhile(int rank, int size)
{
    MPI_Comm copy, with_info, parent;
    MPI_Request requests[2];
    MPI_Info info;
    long sum = 0;
    (void)size;
    MPI_Info_create(&info);
    for (int round = 0; round < 3; round++) {
        MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &parent);
        MPI_Comm_idup(parent, &copy, &requests[0]);
        sum += exchange(MPI_COMM_WORLD) + exchange_once(parent, round);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Comm_idup_with_info(parent, info, &with_info, &requests[1]);
        sum += exchange(copy);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        sum += ct__free(&copy) + ct__free(&with_info) + ct__free(&parent);
    }
    MPI_Info_free(&info);
    return sum;
}

static int ct__copies, ct__deletes;
static int ct__copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)keyval, (void)extra;
    ct__copies++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int ct__delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    ct__deletes++;
    return MPI_SUCCESS;
}

/* Names, attributes of any value, info: nothing of it changes, and no copy function is called but for the program's. */
static long ct__own_marks(int rank, int size)
{
    int keyval, flag, length;
    void *there;
    char name[MPI_MAX_OBJECT_NAME], text[64] = "";
    MPI_Info info, seen;
    MPI_Comm comm, copy;
    (void)size;
    MPI_Comm_create_keyval(ct__copy, ct__delete, &keyval, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_attr(comm, keyval, (void *)-1);
    MPI_Comm_set_name(comm, "a name with spaces");
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    MPI_Info_set(info, "mpi_assert_allow_overtaking", "true");
    MPI_Comm_set_info(comm, info);
    long sum = exchange(comm);
    MPI_Comm_set_attr(comm, keyval, NULL);
    MPI_Comm_dup(comm, &copy);
    sum += exchange(copy);
    MPI_Comm_get_name(comm, name, &length);
    MPI_Comm_get_attr(copy, keyval, &there, &flag);
    MPI_Comm_get_info(comm, &seen);
    int has;
    MPI_Info_get(seen, "mpi_assert_no_any_tag", 63, text, &has);
    sum += flag * 3 + (there == NULL) * 5 + strcmp(name, "a name with spaces") * 7 + length * 11 + has * 13 + (long)strlen(text);
    MPI_Info_free(&seen);
    MPI_Info_free(&info);
    MPI_Comm_delete_attr(copy, keyval);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
    MPI_Comm_free_keyval(&keyval);
    return sum * 100 + ct__copies * 10 + ct__deletes + rank;
}

static long ct__single_ranks(int rank, int size)
{
    MPI_Comm own;
    (void)size;
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &own);
    long sum = exchange(MPI_COMM_SELF) + exchange(own);
    MPI_Comm_free(&own);
    return sum;
}

static long ct__many_in_turn(int rank, int size)
{
    long sum = 0;
    (void)rank, (void)size;
    for (int i = 0; i < 30; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        sum += exchange_once(comm, i);
        MPI_Comm_free(&comm);
    }
    return sum;
}

#ifdef OPEN_MPI /* MPICH's wheel opens no port within a job */
static long ct__connected(int rank, int size)
{
    char port[MPI_MAX_PORT_NAME];
    int low = rank == 0;
    MPI_Comm half, inter, merged;
    if (size < 2)
        return 0;
    MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half);
    if (low)
        MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (low)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
    MPI_Intercomm_merge(inter, low, &merged);
    long sum = ct__free(&merged);
    int own;
    MPI_Comm_rank(half, &own);
    sum += ct__across(inter, low, own);
    MPI_Comm_disconnect(&inter);
    if (low)
        MPI_Close_port(port);
    return sum + ct__free(&half);
}

#endif

static long ct__windows(int rank, int size)
{
    int memory[MOST_RANKS], word;
    long sum = 0;
    MPI_Win window, shared;
    MPI_Group world, others;
    int *mine, range[1][3] = {{0, size - 1, 1}};
    for (int i = 0; i < MOST_RANKS; i++)
        memory[i] = -1;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, range, &others);
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &shared);
    for (int round = 0; round < 4; round++) {
        word = rank * 10 + round;
        MPI_Win_fence(0, window);
        MPI_Put(&word, 1, MPI_INT, (rank + 1) % size, rank, 1, MPI_INT, window);
        sum += exchange_once(MPI_COMM_WORLD, round);
        MPI_Win_fence(0, window);
        MPI_Win_post(others, 0, window);
        MPI_Win_start(others, 0, window);
        MPI_Put(&word, 1, MPI_INT, (rank + 1) % size, rank, 1, MPI_INT, window);
        sum += exchange_once(MPI_COMM_WORLD, round);
        MPI_Win_complete(window);
        MPI_Win_wait(window);
        MPI_Win_lock_all(0, shared);
        *mine = round;
        sum += exchange_once(MPI_COMM_WORLD, round);
        MPI_Win_unlock_all(shared);
        sum = digest(sum + *mine, memory, size);
    }
    MPI_Group_free(&others);
    MPI_Group_free(&world);
    MPI_Win_free(&shared);
    MPI_Win_free(&window);
    return sum;
}

static const guest_case CASES[] = {
    {"create_group", ct__create_group},
    {"create_empty_group", ct__create_empty_group},
    {"split", ct__split},
    {"topologies", ct__topologies},
    {"intercommunicator", ct__intercommunicator},
    {"copied_meanwhile", ct__copied_meanwhile},
    {"own_marks", ct__own_marks},
    {"single_ranks", ct__single_ranks},
    {"many_in_turn", ct__many_in_turn},
#ifdef OPEN_MPI
    {"connected", ct__connected},
#else
    {"freed_with_a_call_under_way", ct__freed_with_a_call_under_way},
#endif
    {"windows", ct__windows},
};

static int ct__delete_of_self(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)keyval, (void)extra;
    int got = 0;
    MPI_Sendrecv(value, 1, MPI_INT, 0, 1, &got, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE);
    printf("deleted %d\n", got);
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    static int value = 77;
    int keyval;
    MPI_Init(&argc, &argv);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ct__delete_of_self, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &value);
    return run_cases(CASES, sizeof CASES / sizeof *CASES, argc, argv);
}
