// The name of the code that runs now, for messages and recordings.
#pragma once

namespace baregrad::watch {

/// The label of this thread's innermost autograd::Label scope; null without one. Declared here for
/// watchers; defined in autograd/node.cpp, which keeps the labels.
const char* current_label() noexcept;

}  // namespace baregrad::watch
