! MPI_Alltoallv and MPI_Alltoallw from Fortran, by mpif.h (-DMPIF_H), the module mpi (-DMODULE_MPI), or mpi_f08 (-DMODULE_F08).
! Prints, for each: its name, how many messages libcolltune sent in the last of a few calls on this rank, how many were wrong.
! Linked with count_calls.c.
program alltoallv_fortran
#if defined(MODULE_F08)
  use mpi_f08
#elif defined(MODULE_MPI)
  use mpi
#endif
  use iso_c_binding, only: c_long
  implicit none
#if defined(MPIF_H)
  include 'mpif.h'
#endif
  interface
     function count_messages() bind(c, name='count_messages') result(n)
       import :: c_long
       integer(c_long) :: n
     end function
  end interface
  integer, parameter :: most = 64
  integer :: counts(most), displs(most), bytes(most), sent(3 * most), got(3 * most)
#if defined(MODULE_F08)
  type(MPI_Datatype) :: types(most)
  type(MPI_Comm) :: comm
#else
  integer :: types(most), comm
#endif
  integer :: rank, ranks, ierr, i, form

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  do i = 1, ranks
     counts(i) = 2 * mod(rank + i - 1, 2)
     displs(i) = 3 * (i - 1)
     bytes(i) = 4 * displs(i)
     types(i) = MPI_INTEGER
  end do
  do form = 1, 3
     call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
     call several(form)
     call MPI_Comm_free(comm, ierr)
  end do
  call MPI_Finalize(ierr)

contains

  subroutine several(form)
    integer, intent(in) :: form
    integer :: repeat, wrong, all(2), mine(2)
    integer(c_long) :: before
    character(len=18), parameter :: names(3) = ['alltoallv         ', 'alltoallw         ', 'alltoallv_in_place']
    wrong = 0
    do repeat = 1, 4
       call fill(sent, repeat)
       got = -1
       if (form == 3) got = sent
       before = count_messages()
       if (form == 1) then
          call MPI_Alltoallv(sent, counts, displs, MPI_INTEGER, got, counts, displs, MPI_INTEGER, comm, ierr)
       else if (form == 2) then
          call MPI_Alltoallw(sent, counts, bytes, types, got, counts, bytes, types, comm, ierr)
       else
          call MPI_Alltoallv(MPI_IN_PLACE, counts, displs, MPI_INTEGER, got, counts, displs, MPI_INTEGER, comm, ierr)
       end if
       wrong = wrong + bad(repeat)
    end do
    mine = [int(count_messages() - before), wrong]
    call MPI_Reduce(mine, all, 2, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
    if (rank == 0) print '(a,1x,i0,1x,i0)', trim(names(form)), all(1), all(2)
  end subroutine

  subroutine fill(data, repeat)
    integer, intent(out) :: data(:)
    integer, intent(in) :: repeat
    integer :: i, k
    data = -1
    do i = 1, ranks
       do k = 1, counts(i)
          data(3 * (i - 1) + k) = 100000 * repeat + 1000 * rank + 10 * (i - 1) + k
       end do
    end do
  end subroutine

  integer function bad(repeat)
    integer, intent(in) :: repeat
    integer :: i, k, expected
    bad = 0
    do i = 1, ranks
       do k = 1, 3
          expected = -1
          if (k <= counts(i)) expected = 100000 * repeat + 1000 * (i - 1) + 10 * rank + k
          if (got(3 * (i - 1) + k) /= expected) bad = 1
       end do
    end do
  end function
end program
