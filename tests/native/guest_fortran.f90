! Fortran by mpi_f08: operations, error handlers and functions of attributes in Fortran, buffers that are constants, parts of
! arrays, types that no element has. `PROGRAM`: a line for each case and rank, with a number made of all that it received.
module of_guest
  use mpi_f08
  use iso_c_binding, only: c_ptr, c_f_pointer
  implicit none
  integer, parameter :: most = 8, rounds = 9, prime = 1000003
  integer :: handled = 0, deleted = 0
contains
  subroutine digest(total, got)
    integer, intent(inout) :: total
    integer, intent(in) :: got(:)
    integer :: i
    do i = 1, size(got)
       total = mod(total * 31 + mod(got(i), 1000) + 7, prime)
    end do
  end subroutine

  subroutine compose(in, inout, length, type)
    type(c_ptr), value :: in, inout
    integer :: length
    type(MPI_Datatype) :: type
    integer, pointer :: first(:), second(:)
    integer :: i, bytes
    call MPI_Type_size(type, bytes)
    call c_f_pointer(in, first, [length])
    call c_f_pointer(inout, second, [length])
    do i = 1, length
       second(i) = mod(first(i) / 100 * (second(i) / 100), 97) * 100 &
            + mod(first(i) / 100 * mod(second(i), 100) + mod(first(i), 100), 97) + bytes - 4
    end do
  end subroutine

  subroutine handle(comm, code)
    type(MPI_Comm) :: comm
    integer :: code, rank
    call MPI_Comm_rank(comm, rank)
    if (code /= MPI_SUCCESS) handled = handled + 1
  end subroutine

  subroutine delete(comm, key, value, extra, ierror)
    type(MPI_Comm) :: comm
    integer :: key, ierror, total
    integer(MPI_ADDRESS_KIND) :: value, extra
    total = int(value)
    call exchange(MPI_COMM_WORLD, total) ! Open MPI 4.1 hands on no communicator that Fortran knows
    deleted = mod(deleted + total, prime)
    ierror = MPI_SUCCESS
  end subroutine

  subroutine exchange(comm, total)
    type(MPI_Comm), intent(in) :: comm
    integer, intent(inout) :: total
    integer :: rank, ranks, round, i, root
    integer :: sent(2 * most), got(2 * most), counts(most), places(most), bytes(most)
    type(MPI_Datatype) :: types(most)
    call MPI_Comm_rank(comm, rank)
    call MPI_Comm_size(comm, ranks)
    do round = 1, rounds
       root = mod(round, ranks)
       sent = [(100 * rank + 3 * i + round, i = 1, 2 * most)]
       counts = 2
       places = [(2 * (i - 1), i = 1, most)]
       bytes = 4 * places
       types = MPI_INTEGER
       got = -1
       call MPI_Barrier(comm)
       call MPI_Allgather(sent, 2, MPI_INTEGER, got, 2, MPI_INTEGER, comm)
       call digest(total, got)
       call MPI_Alltoall(sent, 2, MPI_INTEGER, got, 2, MPI_INTEGER, comm)
       call digest(total, got)
       call MPI_Alltoallv(sent, counts, places, MPI_INTEGER, got, counts, places, MPI_INTEGER, comm)
       call digest(total, got)
       call MPI_Alltoallw(sent, counts, bytes, types, got, counts, bytes, types, comm)
       call digest(total, got)
       call MPI_Allreduce(sent, got, 3, MPI_INTEGER, MPI_SUM, comm)
       call digest(total, got)
       call MPI_Reduce(sent, got, 2, MPI_INTEGER, MPI_MAX, root, comm)
       if (rank == root) call digest(total, got)
       call MPI_Bcast(sent, 3, MPI_INTEGER, root, comm)
       call digest(total, sent)
    end do
  end subroutine

  subroutine in_place(ranks, total)
    integer, intent(in) :: ranks
    integer, intent(inout) :: total
    integer :: rank, round, i, data(2 * most), counts(most), places(most), bytes(most)
    type(MPI_Datatype) :: types(most)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    counts = 2
    places = [(2 * (i - 1), i = 1, most)]
    bytes = 4 * places
    types = MPI_INTEGER
    do round = 1, rounds
       data = [(10 * rank + i + round, i = 1, 2 * most)]
       call MPI_Allreduce(MPI_IN_PLACE, data, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
       call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, 2, MPI_INTEGER, MPI_COMM_WORLD)
       call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, 2, MPI_INTEGER, MPI_COMM_WORLD)
       call MPI_Alltoallv(MPI_IN_PLACE, counts, places, MPI_DATATYPE_NULL, data, counts, places, MPI_INTEGER, MPI_COMM_WORLD)
       call MPI_Alltoallw(MPI_IN_PLACE, counts, bytes, types, data, counts, bytes, types, MPI_COMM_WORLD)
       if (rank == mod(round, ranks)) then
          call MPI_Reduce(MPI_IN_PLACE, data, 2, MPI_INTEGER, MPI_SUM, rank, MPI_COMM_WORLD)
       else
          call MPI_Reduce(data, data, 2, MPI_INTEGER, MPI_SUM, mod(round, ranks), MPI_COMM_WORLD)
       end if
       call digest(total, data)
    end do
  end subroutine

  ! The compiler hands on a copy of what is not in one piece, or its descriptor.
  subroutine parts(ranks, total)
    integer, intent(in) :: ranks
    integer, intent(inout) :: total
    integer :: rank, round, i, table(3, 2 * most), got(2 * most)
    integer(MPI_ADDRESS_KIND) :: address
    type(MPI_Datatype) :: absolute
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Get_address(got, address)
    call MPI_Type_create_hindexed(1, [2], [address], MPI_INTEGER, absolute)
    call MPI_Type_commit(absolute)
    do round = 1, rounds
       table = reshape([(rank + i * round, i = 1, 6 * most)], [3, 2 * most])
       got = round
       call MPI_Allgather((table(2, 1:2)), 2, MPI_INTEGER, got, 2, MPI_INTEGER, MPI_COMM_WORLD)
       call digest(total, got)
       call MPI_Allreduce(rank + round, got, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
       call MPI_Bcast(MPI_BOTTOM, 1, absolute, mod(round, ranks), MPI_COMM_WORLD)
       call digest(total, got)
    end do
    call MPI_Type_free(absolute)
  end subroutine

  subroutine operations(ranks, total)
    integer, intent(in) :: ranks
    integer, intent(inout) :: total
    integer :: rank, round, sent(3), got(3)
    type(MPI_Op) :: op
    type(MPI_Request) :: requests(2)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Op_create(compose, .false., op)
    do round = 1, rounds
       got = 0
       sent = 100 * (1 + rank + round) + 7 * rank + [1, 2, 3]
       call MPI_Allreduce(sent, got, 3, MPI_INTEGER, op, MPI_COMM_WORLD)
       call digest(total, got)
       call MPI_Reduce(sent, got, 3, MPI_INTEGER, op, mod(round, ranks), MPI_COMM_WORLD)
       call digest(total, got)
       call MPI_Iallreduce(sent, got, 3, MPI_INTEGER, op, MPI_COMM_WORLD, requests(1))
       call MPI_Ibcast(sent, 3, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(2))
       call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
       call digest(total, got)
       call digest(total, sent)
    end do
    call MPI_Op_free(op)
  end subroutine

  subroutine errors(ranks, total)
    integer, intent(in) :: ranks
    integer, intent(inout) :: total
    integer :: round, code, word, counts(most), places(most), data(2 * most)
    type(MPI_Comm) :: comm
    type(MPI_Errhandler) :: own, there
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_create_errhandler(handle, own)
    call MPI_Comm_set_errhandler(comm, own)
    counts = 1
    places = 0
    do round = 1, rounds
       data = round
       word = round
       call MPI_Bcast(word, 1, MPI_INTEGER, ranks + round, comm, code)
       if (code == MPI_SUCCESS) total = total + 1
       counts(1) = -1
       call MPI_Alltoallv(data, counts, places, MPI_INTEGER, data, counts, places, MPI_INTEGER, comm, code)
       if (code == MPI_SUCCESS) total = total + 1
       counts(1) = 1
       call MPI_Comm_get_errhandler(comm, there)
       if (there /= own) total = total + 1000
       call exchange(comm, total)
    end do
    total = total + handled
    call MPI_Errhandler_free(own)
    call MPI_Comm_free(comm)
  end subroutine

  subroutine attributes(ranks, total)
    integer, intent(in) :: ranks
    integer, intent(inout) :: total
    integer :: key, round
    type(MPI_Comm) :: comm
    call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete, key, 0_MPI_ADDRESS_KIND)
    do round = 1, 3
       call MPI_Comm_split(MPI_COMM_WORLD, 0, -round, comm)
       call MPI_Comm_set_attr(comm, key, int(round, MPI_ADDRESS_KIND))
       if (mod(round, 2) == 0) call exchange(comm, total)
       call MPI_Comm_free(comm)
    end do
    call MPI_Comm_free_keyval(key)
    total = total + deleted + ranks
  end subroutine
end module

program guest_fortran
  use of_guest
  implicit none
  integer :: rank, ranks, total, at
  character(len=10), parameter :: names(6) = ['exchange  ', 'in_place  ', 'parts     ', 'operations', 'errors    ', 'attributes']
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  do at = 1, size(names)
     total = 0
     select case (at)
     case (1)
        call exchange(MPI_COMM_WORLD, total)
     case (2)
        call in_place(ranks, total)
     case (3)
        call parts(ranks, total)
     case (4)
        call operations(ranks, total)
     case (5)
        call errors(ranks, total)
     case (6)
        call attributes(ranks, total)
     end select
     print '(a,a,i0,a,i0)', trim(names(at)), ' rank=', rank, ' ', total
     flush(6)
  end do
  call MPI_Finalize()
end program
