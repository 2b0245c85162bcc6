// Joining the parts of a message.
#include "core/message.h"

namespace baregrad::detail {

void MessagePart::append_to(std::string& out) const {
  switch (kind_) {
    case Kind::Text:
      out += text_;
      break;
    case Kind::Character:
      out += character_;
      break;
    case Kind::Signed:
      out += std::to_string(signed_);
      break;
    case Kind::Unsigned:
      out += std::to_string(unsigned_);
      break;
    case Kind::Real:
      out += std::to_string(real_);
      break;
  }
}

std::string join(std::initializer_list<MessagePart> parts) {
  std::string out;
  for (const MessagePart& part : parts) part.append_to(out);
  return out;
}

}  // namespace baregrad::detail
