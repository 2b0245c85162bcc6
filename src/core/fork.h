// Fork safety: objects with locks are brought into a known state around a fork.
#pragma once

namespace baregrad::detail {

/// An object that must be in a known state when the process forks. Typically before_fork() takes
/// its locks and after_fork() gives them back, in the parent and in the child.
class ForkParticipant {
 public:
  virtual void before_fork() noexcept = 0;
  virtual void after_fork(bool in_child) noexcept = 0;

 protected:
  ~ForkParticipant() = default;
};

/// Must not be called while holding a lock that before_fork() takes. Participants are prepared in
/// the order in which they were added, and released in the reverse order.
void add_fork_participant(ForkParticipant& participant);
void remove_fork_participant(ForkParticipant& participant) noexcept;

}  // namespace baregrad::detail
