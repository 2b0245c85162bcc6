// Sends one line, reads one line.
#include "lab/python_peer.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include <unistd.h>

#include "baregrad/error.h"
#include "lab/child.h"

namespace baregrad::lab {

std::string find_python(std::string& why) {
  const char* chosen = std::getenv("BAREGRAD_LAB_PYTHON");
  const std::string python = chosen != nullptr && *chosen != '\0' ? chosen : "python3";
  const Outcome outcome = run_child({python, "-c", "import baregrad.lab"});
  if (outcome.status == 0) return python;
  why = python + " cannot import baregrad (" + outcome.last_line() +
        "); `make lab` sets one up, $BAREGRAD_LAB_PYTHON names another";
  return "";
}

std::unique_ptr<PythonPeer> PythonPeer::start(Notebook& notebook, int threads) {
  std::string why;
  const std::string python = find_python(why);
  if (python.empty()) {
    notebook.absent("NumPy and PyTorch", why);
    return nullptr;
  }
  const std::string count = std::to_string(threads);
  const Piped child =
      start_child({python, "-m", "baregrad.lab.peer"}, {{"OPENBLAS_NUM_THREADS", count},
                                                        {"OMP_NUM_THREADS", count},
                                                        {"MKL_NUM_THREADS", count},
                                                        {"BAREGRAD_NUM_THREADS", count}});
  std::unique_ptr<PythonPeer> peer(new PythonPeer);
  peer->process_ = child.process;
  peer->to_ = child.to;
  peer->from_ = child.from;
  peer->hello_ = peer->ask({{"do", "hello"}, {"threads", threads}});
  for (const char* library : {"numpy", "torch"}) {
    if (!peer->has(library)) {
      notebook.absent(library, peer->hello_["missing"].value(library, "not installed"));
    }
  }
  return peer;
}

PythonPeer::~PythonPeer() {
  ::close(to_);  // the peer ends at the end of its input
  ::close(from_);
  wait_for(process_);
}

bool PythonPeer::has(const std::string& library) const {
  return hello_.at("versions").contains(library);
}

std::string PythonPeer::version(const std::string& library) const {
  return hello_.at("versions").value(library, "");
}

Json PythonPeer::ask(const Json& question) {
  std::string line = question.dump() + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = ::write(to_, line.data() + sent, line.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw Error("lab: the Python peer is gone");
    sent += static_cast<std::size_t>(count);
  }
  std::size_t end = 0;
  while ((end = unread_.find('\n')) == std::string::npos) {
    std::array<char, 4096> buffer{};
    const ssize_t count = ::read(from_, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw Error("lab: the Python peer ended while it was asked " + question.dump());
    unread_.append(buffer.data(), static_cast<std::size_t>(count));
  }
  const Json answer = Json::parse(unread_.substr(0, end));
  unread_.erase(0, end + 1);
  if (answer.contains("error")) {
    throw Error("lab: the Python peer failed: " + answer.value("error", ""));
  }
  return answer;
}

}  // namespace baregrad::lab
