// Open MPI or MPICH as the benchmark measures it: one source, compiled by either one's mpicxx.
//   mpirun -n P mpi_peer SOCKET
#define OMPI_SKIP_MPICXX 1  // the C interface only
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <string>

#include "trireme/base/error.h"
#include "trireme/cli/bench/rank.h"

namespace {

using namespace trireme;

MPI_Datatype mpi_type(DType type) {
  switch (type) {
    case DType::f32:
      return MPI_FLOAT;
    case DType::f64:
      return MPI_DOUBLE;
    case DType::i8:
      return MPI_INT8_T;
    case DType::u8:
      return MPI_UINT8_T;
    case DType::i32:
      return MPI_INT32_T;
    case DType::i64:
      return MPI_INT64_T;
    default:
      throw ConfigError("MPI has no element type " + std::string(name(type)));
  }
}

MPI_Op mpi_op(Op op) {
  switch (op) {
    case Op::sum:
      return MPI_SUM;
    case Op::min:
      return MPI_MIN;
    case Op::max:
      return MPI_MAX;
    case Op::prod:
      return MPI_PROD;
    case Op::band:
      return MPI_BAND;
    case Op::bor:
      return MPI_BOR;
    case Op::bxor:
      return MPI_BXOR;
    default:
      throw ConfigError("MPI has no operator " + std::string(name(op)));
  }
}

class MpiSystem : public bench::System {
 public:
  std::string describe() override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    std::string version(text, static_cast<std::size_t>(length));
    std::replace(version.begin(), version.end(), '\t', ' ');
    return version.substr(0, version.find_first_of(",\n"));
  }

  std::string prepare(const bench::Job& job) override {
    if (job.call.count > INT_MAX) throw ConfigError("MPI counts at most 2^31 - 1 elements");
    type_ = mpi_type(job.dtype);
    op_ = mpi_op(job.op);
    return "default shm";
  }

  void run(const bench::Job& job, const std::byte* in, std::byte* out) override {
    const int n = static_cast<int>(job.call.count);
    const int root = job.call.root;
    switch (job.call.what) {
      case Collective::broadcast:
        MPI_Bcast(out, n, type_, root, MPI_COMM_WORLD);
        break;
      case Collective::scatter:
        MPI_Scatter(in, n, type_, out, n, type_, root, MPI_COMM_WORLD);
        break;
      case Collective::gather:
        MPI_Gather(in, n, type_, out, n, type_, root, MPI_COMM_WORLD);
        break;
      case Collective::reduce:
        MPI_Reduce(in, out, n, type_, op_, root, MPI_COMM_WORLD);
        break;
      case Collective::all_gather:
        MPI_Allgather(in, n, type_, out, n, type_, MPI_COMM_WORLD);
        break;
      case Collective::reduce_scatter:
        MPI_Reduce_scatter_block(in, out, n, type_, op_, MPI_COMM_WORLD);
        break;
      case Collective::all_reduce:
        MPI_Allreduce(MPI_IN_PLACE, out, n, type_, op_, MPI_COMM_WORLD);
        break;
      case Collective::all_to_all:
        MPI_Alltoall(in, n, type_, out, n, type_, MPI_COMM_WORLD);
        break;
      case Collective::barrier:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    }
  }

  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

 private:
  MPI_Datatype type_ = MPI_FLOAT;
  MPI_Op op_ = MPI_SUM;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  try {
    MpiSystem system;
    if (argc != 2) throw ConfigError("usage: mpi_peer SOCKET");
    if (!bench::serve(system, argv[1], rank, ranks)) _exit(1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    _exit(1);
  }
  MPI_Finalize();
}
