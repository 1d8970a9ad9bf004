#include "trireme/cli/bench/peers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/base/files/cache_folder.h"
#include "trireme/base/text/nearest.h"

namespace trireme::bench {
namespace {

namespace fs = std::filesystem;

int cores() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

// One rank a core is Open MPI's own choice up to two ranks; we ask for it up to all cores. With more ranks than cores
// it yields while it waits, by itself, once told that this is meant.
std::vector<Argv> openmpi_commands(const std::string& program, int ranks, const std::string& socket,
                                   const std::string&) {
  Argv argv{"mpirun.openmpi", "--allow-run-as-root", "-np", std::to_string(ranks)};
  if (ranks <= cores()) {
    argv.insert(argv.end(), {"--bind-to", "core"});
  } else {
    argv.push_back("--oversubscribe");
  }
  argv.insert(argv.end(), {program, socket});
  return {argv};
}

std::vector<Argv> mpich_commands(const std::string& program, int ranks, const std::string& socket, const std::string&) {
  Argv argv{"mpiexec.hydra", "-n", std::to_string(ranks)};
  if (ranks <= cores()) argv.insert(argv.end(), {"-bind-to", "core"});
  argv.insert(argv.end(), {program, socket});
  return {argv};
}

// Not bound: each rank has a second thread that moves its bytes.
std::vector<Argv> gloo_commands(const std::string& program, int ranks, const std::string& socket,
                                const std::string& folder) {
  std::vector<Argv> commands;
  for (int rank = 0; rank < ranks; ++rank) {
    commands.push_back({program, socket, std::to_string(rank), std::to_string(ranks), folder});
  }
  return commands;
}

constexpr std::array kPeers{
    Peer{"openmpi", "libopenmpi-dev openmpi-bin", "mpi_peer.cpp", "mpicxx.openmpi", "mpirun.openmpi", "", true, true,
         openmpi_commands},
    Peer{"mpich", "libmpich-dev mpich", "mpi_peer.cpp", "mpicxx.mpich", "mpiexec.hydra", "", true, true,
         mpich_commands},
    Peer{"gloo", "libgloo-dev", "gloo_peer.cpp", "g++", "/usr/include/gloo/allreduce.h", "-lgloo -pthread", false,
         false, gloo_commands},
};

// What a peer's program is made of besides its own file.
constexpr std::array kShared{"src/trireme/cli/bench/rank.cpp", "src/trireme/cli/bench/pattern.cpp",
                             "src/trireme/cli/bench/wire.cpp", "src/trireme/base/dtype.cpp",
                             "src/trireme/base/error.cpp"};
constexpr std::array kHeaders{"src/trireme/cli/bench/rank.h",     "src/trireme/cli/bench/pattern.h",
                              "src/trireme/cli/bench/wire.h",     "include/trireme/base/clock.h",
                              "include/trireme/base/dtype.h",     "include/trireme/base/error.h",
                              "src/trireme/collective/schedule.h"};

// An absolute path that exists, or a program on the PATH.
bool is_there(std::string_view what) {
  if (what.starts_with('/')) return fs::exists(what);
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((fs::path(folder) / what).c_str(), X_OK) == 0) return true;
  }
  return false;
}

// Where bench/, include/ and src/ are: beside an installed program, or the tree this one was built from.
fs::path source_root() {
  std::error_code ignored;
  fs::path installed = fs::read_symlink("/proc/self/exe", ignored).parent_path() / "../share/trireme";
  for (const fs::path& root : {installed, fs::path(TRIREME_SOURCE_DIR)}) {
    if (fs::exists(root / "bench/peers" / kPeers[0].source)) return root;
  }
  throw Error(fmt::format("the peers' sources are neither in {} nor in {}", installed.string(), TRIREME_SOURCE_DIR));
}

// FNV-1a over the command and every file it reads, so that a changed source gets a program of its own.
std::uint64_t fingerprint(const std::string& command, const fs::path& root, std::string_view source) {
  std::uint64_t hash = 0xcbf29ce484222325;
  auto add = [&](std::string_view text) {
    for (unsigned char byte : text) hash = (hash ^ byte) * 0x100000001b3;
  };
  auto add_file = [&](const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) throw Error("cannot read " + path.string());
    add(text.str());
  };
  add(command);
  add_file(root / "bench/peers" / source);
  for (auto* file : kShared) add_file(root / file);
  for (auto* file : kHeaders) add_file(root / file);
  return hash;
}

void compile(const Peer& peer, const Argv& command) {
  Output output;
  if (start_child(command, output.fd()).finish(std::chrono::minutes(5)) != 0) {
    throw Error(fmt::format("peer {} does not build: {}", peer.name, output.first_line()));
  }
}

}  // namespace

std::span<const Peer> peers() { return kPeers; }

std::vector<const Peer*> parse_peers(std::string_view text) {
  std::vector<const Peer*> chosen;
  std::istringstream words{std::string(text)};
  for (std::string word; std::getline(words, word, ',');) {
    const Peer* found = nullptr;
    std::vector<std::string_view> valid;
    for (auto& peer : kPeers) {
      if (peer.name == word) found = &peer;
      valid.push_back(peer.name);
    }
    if (!found) not_one_of("--peers", word, valid);
    if (std::find(chosen.begin(), chosen.end(), found) == chosen.end()) chosen.push_back(found);
  }
  if (chosen.empty()) throw ConfigError("--peers: no peer named");
  return chosen;
}

void require_able(const Peer& peer, Collective what, DType dtype, Op op) {
  auto lacks = [&](std::string_view kind, std::string_view which) {
    throw ConfigError(fmt::format("--peers: {} has no {} {}; leave it out", peer.name, kind, which));
  };
  if (what == Collective::reduce_scatter && !peer.reduce_scatter) lacks("collective", name(what));
  if (dtype == DType::f16 || dtype == DType::bf16) lacks("element type", name(dtype));
  if (reduces(what) && (op == Op::avg || (is_bitwise(op) && !peer.bitwise))) lacks("operator", name(op));
}

std::string build_peer(const Peer& peer) {
  if (!is_there(peer.compiler) || !is_there(peer.needs)) {
    throw ConfigError(fmt::format("--peers: {} is not installed; apt-get install {}", peer.name, peer.packages));
  }
  fs::path root = source_root();
  Argv command{std::string(peer.compiler),
               "-std=c++20",
               "-O3",
               "-march=native",
               "-I" + (root / "include").string(),
               "-I" + (root / "src").string(),
               (root / "bench/peers" / peer.source).string()};
  for (auto* file : kShared) command.push_back((root / file).string());
  std::istringstream links{std::string(peer.links)};
  for (std::string word; links >> word;) command.push_back(word);

  std::uint64_t hash = fingerprint(fmt::format("{}", fmt::join(command, " ")), root, peer.source);
  fs::path program = cache_folder() / "peers" / fmt::format("{}-{:016x}", peer.name, hash);
  if (fs::exists(program)) return program.string();
  std::error_code error;
  fs::create_directories(program.parent_path(), error);
  if (error) throw Error(fmt::format("cannot make the folder {}: {}", program.parent_path().string(), error.message()));
  // Built under another name and then renamed: two benchmarks may start at once.
  std::string fresh = fmt::format("{}.{}", program.string(), ::getpid());
  command.insert(command.end(), {"-o", fresh});
  compile(peer, command);
  fs::rename(fresh, program);
  return program.string();
}

}  // namespace trireme::bench
