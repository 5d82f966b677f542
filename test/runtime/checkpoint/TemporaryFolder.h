// A folder that is gone after the test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace msc::test {

class TemporaryFolder {
public:
  TemporaryFolder() {
    // Memory where there is some: these tests write thousands of small files.
    std::filesystem::path parent = "/dev/shm";
    if (!std::filesystem::is_directory(parent))
      parent = std::filesystem::temp_directory_path();
    std::string pattern = (parent / "msc_test_XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  std::string file(const std::string &name) const { return (folder / name).string(); }
  std::string path() const { return folder.string(); }

private:
  std::filesystem::path folder;
};

inline std::string contentOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

inline void fill(const std::string &path, const std::string &content) {
  std::ofstream(path, std::ios::binary) << content;
}

} // namespace msc::test
