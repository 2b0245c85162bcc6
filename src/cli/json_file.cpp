// Lines are collected and written at the end.
#include "cli/json_file.h"

namespace baregrad::cli {

JsonFile::JsonFile(const std::string& path) {
  if (!path.empty()) file_.emplace(path, "--json");
}

void JsonFile::add(const Json& object) {
  if (wanted()) lines_ += object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void JsonFile::save() {
  if (!wanted()) return;
  file_->open();
  file_->write(lines_);
  file_->commit();
}

}  // namespace baregrad::cli
