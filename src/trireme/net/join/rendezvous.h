// How ranks that know nothing of each other meet at rank 0: at an address, or through a file in which rank 0 leaves
// its address. The file also holds a nonce that becomes part of the job's name, so that a file left by an earlier job
// leads nowhere, even when its port is in use again.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "trireme/net/join/connector.h"
#include "trireme/net/world.h"

namespace trireme::net {

struct RendezvousFile {
  std::string address;
  std::string nonce;  // hex
};
// Written beside and moved into place, mode 0600.
void write_rendezvous_file(const std::filesystem::path& path, const RendezvousFile& content);
// Nothing while the file is absent. Throws ConfigError if it is not ours, not of mode 0600, or not such a file.
std::optional<RendezvousFile> read_rendezvous_file(const std::filesystem::path& path);

// Where ranks of one host meet when nobody said where: a file in a folder of mode 0700 that belongs to the user.
std::filesystem::path local_rendezvous_path(std::string_view job);

// The rendezvous, entered. Destroying it takes the file away.
class Rendezvous {
 public:
  Rendezvous(const WorldSpec& spec, const ConnectOptions& options, const Key& key);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // Rank 0: the listener, where the others will find it.
  Fd listen();
  // Others: a control connection to rank 0. Throws Timeout, ProtocolError.
  Fd join(Deadline deadline);
  // What connections of this job prove; known after listen() or join().
  const Session& session() const { return session_; }

 private:
  std::optional<Place> place_in_file();

  const WorldSpec& spec_;
  const ConnectOptions& options_;
  const Key& key_;
  std::filesystem::path file_;  // empty: at an address
  std::string nonce_;           // of the file, once rank 0 wrote it
  Session session_;
};

// A listener of any port for a rank other than 0: where options.bind says, else on loopback, of the family of `link`,
// the connection to rank 0. Throws ConfigError for an address beyond loopback without a job key.
Fd listen_beside(const Fd& link, const ConnectOptions& options, const Key& key);
// What the others shall call to reach `listener`.
std::string contact_of(const Fd& listener, const Fd& link);

}  // namespace trireme::net
