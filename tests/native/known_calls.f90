! The collective calls of known number that a Fortran program makes, by each of the three interfaces.
subroutine old_interface(world)
  implicit none
  include 'mpif.h'
  integer, intent(in) :: world
  integer :: i, ierr, rank, total
  double precision :: in(32), out(32)
  in = 1d0
  call MPI_Comm_rank(world, rank, ierr)
  do i = 1, 5
    call MPI_Allreduce(in, out, 8, MPI_DOUBLE_PRECISION, MPI_SUM, world, ierr)
  end do
  out = 1d0
  call MPI_Allreduce(MPI_IN_PLACE, out, 8, MPI_DOUBLE_PRECISION, MPI_SUM, world, ierr)
  call MPI_Comm_size(world, total, ierr)
  if (abs(out(1) - total) > 1d-9) call MPI_Abort(world, 1, ierr)
  call MPI_Bcast(in, 3, MPI_INTEGER, 0, world, ierr)
  call MPI_Barrier(world, ierr)
end subroutine

subroutine module_interface(world)
  use mpi
  implicit none
  integer, intent(in) :: world
  integer :: i, ierr, request, status(MPI_STATUS_SIZE)
  double precision :: in(64), out(64)
  in = 1d0
  do i = 1, 4
    call MPI_Alltoall(in, 2, MPI_DOUBLE_PRECISION, out, 2, MPI_DOUBLE_PRECISION, world, ierr)
  end do
  call MPI_Ibcast(in, 4, MPI_DOUBLE_PRECISION, 0, world, request, ierr)
  call MPI_Wait(request, status, ierr)
end subroutine

subroutine new_interface()
  use mpi_f08
  implicit none
  integer :: i
  double precision :: in(64), out(64)
  in = 1d0
  do i = 1, 3
    call MPI_Allgather(in, 4, MPI_DOUBLE_PRECISION, out, 4, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD)
  end do
  call MPI_Reduce(in, out, 6, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD)
end subroutine

program known_calls
  implicit none
  include 'mpif.h'
  integer :: ierr
  call MPI_Init(ierr)
  call old_interface(MPI_COMM_WORLD)
  call module_interface(MPI_COMM_WORLD)
  call new_interface()
  call MPI_Finalize(ierr)
end program
