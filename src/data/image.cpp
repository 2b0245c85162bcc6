// Images of all supported formats, detected by their first bytes.
#include "data/source.h"

namespace baregrad::data {

namespace {

Tensor decode(Bytes bytes, const std::string& who, std::uint64_t limit) {
  if (bytes.size() >= 2 && bytes[0] == 0x89 && bytes[1] == 'P') {
    return decode_png(bytes, who, limit);
  }
  if (bytes.size() >= 2 && bytes[0] == 'P') return decode_pnm(bytes, who, limit);
  fail(who, "is no image that can be read: neither PNG nor PGM or PPM");
}

}  // namespace

Tensor decode_image(Bytes bytes, std::uint64_t max_bytes) {
  return decode(bytes, "decode_image", decoded_limit(bytes.size(), max_bytes));
}

Tensor read_image(const std::string& path, std::uint64_t max_bytes) {
  const std::unique_ptr<Source> source = open_file(path, "read_image", max_bytes);
  return decode(read_all(*source), source->who(), source->limit());
}

}  // namespace baregrad::data
