// Renaming of errors.
#include "core/rename.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "core/message.h"

namespace baregrad {

namespace {

bool is_in_a_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

/// "size: axis 7 is ..." as "squeeze: axis 7 is ...".
std::string renamed(std::string_view text, const char* who) {
  const std::size_t colon = text.find(':');
  const bool has_name = colon != std::string_view::npos && colon > 0 &&
                        std::all_of(text.begin(), text.begin() + colon, is_in_a_name);
  return has_name ? message(who, text.substr(colon)) : message(who, ": ", text);
}

}  // namespace

void rethrow_in_name_of(const char* who) {
  try {
    throw;
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(renamed(error.what(), who), error.requested_bytes(), error.live_bytes());
  } catch (const ShapeError& error) {
    throw ShapeError(renamed(error.what(), who));
  } catch (const DTypeError& error) {
    throw DTypeError(renamed(error.what(), who));
  } catch (const IndexError& error) {
    throw IndexError(renamed(error.what(), who));
  } catch (const ValueError& error) {
    throw ValueError(renamed(error.what(), who));
  } catch (const GradError& error) {
    throw GradError(renamed(error.what(), who));
  } catch (const IoError& error) {
    throw IoError(renamed(error.what(), who));
  }
}

}  // namespace baregrad
