/* Communicators that begin and end while calls go on: `guest_ends all|CASE...`, `guest_ends held COUNT`. */
#include "guest_cases.h"

static MPI_Comm ct__other;
static long ct__in_delete;

static int ct__delete_with_calls(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)keyval, (void)value, (void)extra;
    ct__in_delete += exchange_once(comm, 3) + exchange_once(ct__other, 4);
    return MPI_SUCCESS;
}

static int ct__delete_with_many_calls(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)keyval, (void)value, (void)extra;
    ct__in_delete += exchange(comm);
    return MPI_SUCCESS;
}

static int ct__delete_with_communicators(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)keyval, (void)extra;
    MPI_Comm made;
    MPI_Comm_split(comm, 0, 0, &made);
    ct__in_delete += exchange_once(made, 1) + exchange_once(*(MPI_Comm *)value, 2);
    MPI_Comm_free(&made);
    MPI_Comm_free(value);
    return MPI_SUCCESS;
}

/* Collectives of the communicator that is being freed, and of others; the next communicator may have its handle. */
static long ct__collectives_in_a_delete_function(int rank, int size)
{
    int keyval;
    long sum = 0;
    (void)size;
    ct__in_delete = 0;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ct__delete_with_calls, &keyval, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &ct__other);
    for (int round = 0; round < 6; round++) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, round % 2 == 1 ? rank % 2 : 0, rank, &comm);
        MPI_Comm_set_attr(comm, keyval, &keyval);
        sum += round == 0 ? 0 : exchange(comm);
        round % 3 == 2 ? MPI_Comm_disconnect(&comm) : MPI_Comm_free(&comm);
    }
    MPI_Comm_free(&ct__other);
    MPI_Comm_free_keyval(&keyval);
    return sum + ct__in_delete;
}

/* So many that rules begin to hold, and experiments, while attributes are deleted; before and after other attributes of it. */
static long ct__first_calls_in_a_delete_function(int rank, int size)
{
    int keyvals[3], flag;
    long sum = 0;
    void *there;
    (void)size;
    ct__in_delete = 0;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyvals[0], NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ct__delete_with_many_calls, &keyvals[1], NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyvals[2], NULL);
    for (int round = 0; round < 2; round++) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, 0, round % 2 ? -rank : rank, &comm);
        for (int i = 0; i < 3; i++)
            MPI_Comm_set_attr(comm, keyvals[i], keyvals);
        MPI_Comm_get_attr(comm, keyvals[2], &there, &flag);
        MPI_Comm_free(&comm);
        sum += flag + ct__in_delete;
    }
    for (int i = 0; i < 3; i++)
        MPI_Comm_free_keyval(&keyvals[i]);
    return sum;
}

/* One rank makes the calls in its delete function, the others before they free the communicator. */
static long ct__a_delete_function_of_one_rank(int rank, int size)
{
    int keyval;
    long sum = 0;
    ct__in_delete = 0;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ct__delete_with_many_calls, &keyval, NULL);
    for (int round = 0; round < 3; round++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        sum += exchange_once(comm, round);
        if (rank == round % size)
            MPI_Comm_set_attr(comm, keyval, NULL);
        else
            sum += exchange(comm);
        MPI_Comm_free(&comm);
    }
    MPI_Comm_free_keyval(&keyval);
    return sum + ct__in_delete;
}

static long ct__communicators_in_a_delete_function(int rank, int size)
{
    int keyval;
    long sum = 0;
    (void)rank, (void)size;
    ct__in_delete = 0;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ct__delete_with_communicators, &keyval, NULL);
    for (int round = 0; round < 2; round++) {
        MPI_Comm comm, inner;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_dup(MPI_COMM_WORLD, &inner);
        sum += exchange(comm) + exchange(inner);
        MPI_Comm_set_attr(comm, keyval, &inner);
        MPI_Comm_free(&comm);
        sum += inner == MPI_COMM_NULL;
    }
    MPI_Comm_free_keyval(&keyval);
    return sum + ct__in_delete;
}

#ifndef OPEN_MPI /* which crashes for it by itself */
static int ct__copy_with_calls(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)keyval, (void)extra;
    MPI_Comm made;
    MPI_Comm_create_group(comm, *(MPI_Group *)in, 3, &made);
    ct__in_delete += exchange_once(comm, 5) + exchange_once(made, 6);
    MPI_Comm_free(&made);
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static long ct__collectives_in_a_copy_function(int rank, int size)
{
    int keyval;
    long sum = 0;
    MPI_Comm comm, copy;
    MPI_Group group;
    (void)rank, (void)size;
    ct__in_delete = 0;
    MPI_Comm_create_keyval(ct__copy_with_calls, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_group(comm, &group);
    MPI_Comm_set_attr(comm, keyval, &group);
    for (int round = 0; round < 2; round++) {
        sum += exchange_once(comm, round);
        MPI_Comm_dup(comm, &copy);
        sum += exchange(copy);
        MPI_Comm_free(&copy);
    }
    MPI_Comm_delete_attr(comm, keyval);
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
    MPI_Comm_free_keyval(&keyval);
    return sum + ct__in_delete;
}

#endif

/* The handle of one communicator is at once that of the next, which has other members, and is freed through a copy of it. */
static long ct__handles_used_again(int rank, int size)
{
    long sum = 0;
    for (int round = 0; round < 12; round++) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, round % 3 == 1 ? rank % 2 : round % 3 == 2 && rank == size - 1, round % 2 ? -rank : rank, &comm);
        sum = (sum * 7 + exchange_once(comm, round) + exchange_once(comm, round + 1)) % 1000000007L;
        MPI_Comm copy = comm;
        MPI_Comm_free(round % 2 ? &comm : &copy);
    }
    return sum;
}

/* What cannot be freed: nothing of it is forgotten. */
static long ct__failed_frees(int rank, int size)
{
    long sum = exchange_once(MPI_COMM_WORLD, 0);
    MPI_Comm none = MPI_COMM_NULL, world = MPI_COMM_WORLD, self = MPI_COMM_SELF;
    (void)rank, (void)size;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int round = 0; round < 3; round++) {
        sum += (MPI_Comm_free(&none) != MPI_SUCCESS) + (MPI_Comm_free(&world) != MPI_SUCCESS) + (MPI_Comm_free(&self) != MPI_SUCCESS);
        sum += (world == MPI_COMM_WORLD) + (self == MPI_COMM_SELF);
#ifndef OPEN_MPI /* which crashes for it by itself */
        sum += MPI_Comm_free(NULL) != MPI_SUCCESS;
#endif
        sum += exchange(MPI_COMM_WORLD) + exchange(MPI_COMM_SELF);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    return sum;
}

/* Open MPI mixes up what is under way on one communicator, by itself. */
static long ct__exchange_meanwhile(MPI_Comm comm)
{
    long sum = 0;
    for (int round = 0; round < ROUNDS; round++)
        sum = (sum * 17 + exchange_blocking(comm, round)) % 1000000007L;
    return sum;
}

/* Duplicates that stay under way while rules begin to hold on their parent and elsewhere, and that no collective ever uses. */
static long ct__copies_under_way(int rank, int size)
{
    enum { COPIES = 3 };
    long sum = 0;
    (void)size;
    for (int round = 0; round < 2; round++) {
        MPI_Comm parent, beside, copies[COPIES];
        MPI_Request requests[COPIES];
        MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &parent);
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &beside);
        for (int i = 0; i < COPIES; i++)
            MPI_Comm_idup(i == 1 ? beside : parent, &copies[i], &requests[i]);
        sum += ct__exchange_meanwhile(beside) + ct__exchange_meanwhile(parent);
        MPI_Waitall(COPIES, requests, MPI_STATUSES_IGNORE);
        sum += exchange(parent) + (round == 1 ? exchange(copies[0]) : 0);
        for (int i = 0; i < COPIES; i++)
            MPI_Comm_free(&copies[i]);
        sum += exchange(parent) + exchange(beside);
        MPI_Comm_free(&parent);
        MPI_Comm_free(&beside);
    }
    return sum;
}

/* One rank begins a duplicate before the first calls on another communicator, the others after them. */
static long ct__a_copy_begun_by_one_rank(int rank, int size)
{
    long sum = 0;
    for (int round = 0; round < 3; round++) {
        MPI_Comm parent, beside, copy;
        MPI_Request request;
        MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &parent);
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &beside);
        if (rank == round % size)
            MPI_Comm_idup(parent, &copy, &request);
        sum += exchange(beside);
        if (rank != round % size)
            MPI_Comm_idup(parent, &copy, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        sum += exchange(copy) + exchange(beside);
        MPI_Comm_free(&copy);
        MPI_Comm_free(&parent);
        MPI_Comm_free(&beside);
    }
    return sum;
}

/* Freed while requests are pending, and used by other ranks until they free it too. */
static long ct__freed_at_other_times(int rank, int size)
{
    long sum = 0;
    for (int round = 0; round < 3; round++) {
        MPI_Comm comm, next;
        MPI_Request request;
        int word = rank == 0 ? round + 70 : -1, got = -1, right = (rank + 1) % size, left = (rank + size - 1) % size;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        sum += exchange_once(comm, round);
        MPI_Irecv(&got, 1, MPI_INT, left, 4, comm, &request);
        MPI_Bcast(&word, 1, MPI_INT, 0, comm);
        MPI_Send(&rank, 1, MPI_INT, right, 4, comm);
        if (rank % 2)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_free(&comm);
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &next);
        sum += exchange(next);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_free(&next);
        sum = digest(sum + word, &got, 1);
    }
    return sum;
}

/* Nothing is freed: MPI_Finalize ends them all. */
static long ct__left_to_finalize(int rank, int size)
{
    long sum = 0;
    (void)size;
    for (int i = 0; i < 2; i++) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, i % 2 ? rank % 2 : 0, rank, &comm);
        sum += exchange(comm);
    }
    return sum;
}

static const guest_case CASES[] = {
    {"collectives_in_a_delete_function", ct__collectives_in_a_delete_function},
    {"first_calls_in_a_delete_function", ct__first_calls_in_a_delete_function},
    {"a_delete_function_of_one_rank", ct__a_delete_function_of_one_rank},
    {"communicators_in_a_delete_function", ct__communicators_in_a_delete_function},
#ifndef OPEN_MPI
    {"collectives_in_a_copy_function", ct__collectives_in_a_copy_function},
#endif
    {"handles_used_again", ct__handles_used_again},
    {"failed_frees", ct__failed_frees},
    {"copies_under_way", ct__copies_under_way},
    {"a_copy_begun_by_one_rank", ct__a_copy_begun_by_one_rank},
    {"freed_at_other_times", ct__freed_at_other_times},
    {"left_to_finalize", ct__left_to_finalize},
};

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF while MPI still works. */
static int ct__delete_in_finalize(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)keyval, (void)value, (void)extra;
    printf("in finalize %ld %ld\n", exchange_once(comm, 2), exchange_once(MPI_COMM_WORLD, 3));
    return MPI_SUCCESS;
}

/* Communicators that are all held at once, with calls on each. */
static long ct__hold(int count, int rank)
{
    long sum = 0;
    int size, sent[MOST_RANKS], got[MOST_RANKS], counts[MOST_RANKS], places[MOST_RANKS];
    MPI_Comm *held = malloc(sizeof *held * (size_t)count);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < size; i++)
        sent[i] = rank * 10 + i, counts[i] = 1, places[i] = i;
    for (int i = 0; i < count; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &held[i]);
        for (int call = 0; call < 3; call++) {
            MPI_Alltoallv(sent, counts, places, MPI_INT, got, counts, places, MPI_INT, held[i]);
            MPI_Bcast(got, 1, MPI_INT, 0, held[i]);
        }
        sum = digest(sum, got, size);
    }
    for (int i = 0; i < count; i++)
        MPI_Comm_free(&held[i]);
    free(held);
    return sum;
}

int main(int argc, char **argv)
{
    int keyval, rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ct__delete_in_finalize, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &keyval);
    if (argc == 3 && strcmp(argv[1], "held") == 0)
        printf("held rank=%d %ld\n", rank, ct__hold(atoi(argv[2]), rank));
    return run_cases(CASES, sizeof CASES / sizeof *CASES, argc, argv);
}
