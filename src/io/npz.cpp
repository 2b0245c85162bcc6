// npz: a zip archive of npy files.
#include <algorithm>
#include <array>

#include "baregrad/error.h"
#include "baregrad/io.h"
#include "core/message.h"
#include "io/formats.h"
#include "io/input.h"
#include "io/npy.h"
#include "io/output.h"
#include "io/text.h"
#include "io/zip.h"

namespace baregrad::io {

namespace {

constexpr std::string_view kArraySuffix = ".npy";

Tensor read_member(const ZipMember& member, Device device, const std::string& where) {
  ZipReader reader(member, where);
  std::array<std::uint8_t, kNpyPreamble + kMostNpyHeader> header;
  const auto first = static_cast<std::size_t>(std::min<std::uint64_t>(member.bytes, kNpyPreamble));
  reader.read(header.data(), first);
  const std::size_t begin = npy_data_offset({header.data(), first}, where);
  if (begin > member.bytes) throw IoError(message(where, ": ends within the header"));
  // A header is at least 10 bytes: the preamble of version 1 with an empty literal.
  if (begin < first) throw IoError(message(where, ": its header is empty"));
  reader.read(header.data() + first, begin - first);
  const Elements elements = npy_elements({header.data(), begin}, where);
  check_npy_bytes(elements, member.bytes - begin, where);
  const Tensor raw = room_for(elements, where.c_str());
  reader.read(raw.data_ptr(), raw.nbytes());
  reader.finish();
  return finish(raw, elements, where.c_str()).to(device);
}

NamedTensors read_npz(Input input) {
  load_front(input, input.size);
  const std::vector<ZipMember> members = zip_members(input);
  std::vector<std::string_view> names;
  names.reserve(members.size());
  for (const ZipMember& member : members) {
    std::string_view name = member.name;
    if (!name.ends_with(kArraySuffix)) {
      throw IoError(message(input.where, ": member ", quoted_name(name), " is not an npy file"));
    }
    name.remove_suffix(kArraySuffix.size());
    if (const char* fault = name_fault(name)) {
      throw IoError(message(input.where, ": the name ", quoted_name(name), " ", fault));
    }
    names.push_back(name);
  }
  NamedTensors out;
  out.reserve(members.size());
  std::vector<std::string_view> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    throw IoError(message(input.where, ": two members are named ", quoted_name(*twice)));
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::string where = message(input.where, ": member ", quoted_name(members[i].name));
    out.push_back({std::string(names[i]), read_member(members[i], input.device, where)});
  }
  return out;
}

void write(const Sink& sink, const NamedTensors& tensors, NpzMode mode, const char* who) {
  check_named(tensors, who);
  std::vector<std::string> headers;
  headers.reserve(tensors.size());
  for (const NamedTensor& entry : tensors) {
    constexpr std::size_t kMostName = 0xFFFF;
    check_name(entry.name, "the name", who);
    if (entry.name.size() + kArraySuffix.size() > kMostName) {
      throw ValueError(
          message(who, ": the name ", quoted_name(entry.name), " is longer than zip allows"));
    }
    headers.push_back(npy_header(entry.tensor, message(who, ": tensor ", quoted_name(entry.name))));
  }
  ZipWriter zip(sink, who);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i].tensor;
    zip.add(tensors[i].name + std::string(kArraySuffix), headers[i].size() + tensor.nbytes(),
            mode == NpzMode::Deflated, [&](const Sink& out) {
              out(headers[i]);
              write_elements(tensor, out);
            });
  }
  zip.finish();
}

}  // namespace

void save_npz_as(const std::string& path, const NamedTensors& tensors, NpzMode mode,
                 const char* who) {
  write_file(path, who, [&](const Sink& sink) { write(sink, tensors, mode, who); });
}

NamedTensors load_npz_as(const std::string& path, const LoadOptions& options, const char* who) {
  if (options.mmap) {
    throw ValueError(message(who, ": an npz file is an archive, which cannot be mapped"));
  }
  return read_npz(open_input(path, options, who));
}

void save_npz(const std::string& path, const NamedTensors& tensors, NpzMode mode) {
  save_npz_as(path, tensors, mode, "save_npz");
}

Bytes npz_bytes(const NamedTensors& tensors, NpzMode mode) {
  return write_bytes([&](const Sink& sink) { write(sink, tensors, mode, "npz_bytes"); });
}

NamedTensors load_npz(const std::string& path, const LoadOptions& options) {
  return load_npz_as(path, options, "load_npz");
}

NamedTensors parse_npz(std::span<const std::uint8_t> bytes, const std::string& label) {
  return read_npz(buffer(bytes, label, "parse_npz"));
}

}  // namespace baregrad::io
