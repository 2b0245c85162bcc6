// Opens the libtorch peer.
#include "bench/peers_libtorch.h"

#include <cstdlib>
#include <string>
#include <utility>

#include <dlfcn.h>

#include "baregrad/error.h"

namespace baregrad::bench::peers {

Libtorch libtorch(Session& session) {
  constexpr const char* kVariable = "BAREGRAD_LIBTORCH_PEER";
  const char* path = std::getenv(kVariable);
  if (path == nullptr || *path == '\0') {
    session.note(std::string("libtorch is no peer here: ") + kVariable +
                 " names no file; `make bench` builds one and sets it");
    return nullptr;
  }
  // RTLD_LOCAL keeps its symbols private: libtorch loads libraries that are peers here too.
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw ValueError(std::string(kVariable) + ": " + dlerror());
  auto* find =
      reinterpret_cast<const BaregradLibtorchPeer* (*)()>(dlsym(handle, "baregrad_libtorch_peer"));
  if (find == nullptr) {
    throw ValueError(std::string(kVariable) + ": '" + path + "' is no libtorch peer");
  }
  const Libtorch peer = find();
  session.note(std::string("libtorch ") + peer->version());
  return peer;
}

void add_libtorch(Row& row, Libtorch peer, std::function<void(std::int64_t calls)> run) {
  if (peer == nullptr) return;
  row.candidates.push_back(
      {"libtorch", [peer, threads = row.threads, run = std::move(run)](std::int64_t calls) {
         peer->set_threads(threads);
         run(calls);
       }});
}

}  // namespace baregrad::bench::peers
