// Starts msrun in a folder of its own and reads what it leaves there.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "test/runtime/PlanBuilder.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <regex>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace msc::test {

/// Sanitizers need more address space than limits leave; ThreadSanitizer also writes a file before main.
#if defined(__has_feature)
inline constexpr bool underAddressSanitizer = __has_feature(address_sanitizer), underThreadSanitizer = __has_feature(thread_sanitizer);
#else
inline constexpr bool underAddressSanitizer =
#ifdef __SANITIZE_ADDRESS__
    true;
#else
    false;
#endif
inline constexpr bool underThreadSanitizer =
#ifdef __SANITIZE_THREAD__
    true;
#else
    false;
#endif
#endif

struct Outcome {
  int code = -1;
  std::string out, err; ///< `err` without the codes of messages, which the catalogue's tests check
};

inline std::string withoutCodes(const std::string &text) {
  return std::regex_replace(text, std::regex(" \\[MSC[0-9]{4}\\](?=\n)"), "");
}

inline std::string contentOf(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class Msrun : public testing::Test {
protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "msrun-XXXXXX").string();
    folder = ::mkdtemp(name.data());
  }
  void TearDown() override {
    // What a failed test has left behind.
    for (pid_t child : running)
      ::kill(child, SIGTERM);
    std::filesystem::remove_all(folder);
  }
  std::string file(const std::string &name) const { return (folder / name).string(); }
  void save(const PlanBuilder &builder, const std::string &name = "net.plan") {
    ASSERT_TRUE(plan::writePlan(file(name), builder.plan));
  }

  /// Starts a program in the folder; its output goes to the files stdout and stderr there.
  pid_t startProgram(std::vector<std::string> words) {
    std::filesystem::remove(folder / "stdout"); // of the run before
    std::filesystem::remove(folder / "stderr");
    pid_t child = ::fork();
    if (child != 0) {
      running.insert(child);
      return child;
    }
    // The environment of an outer mpirun says nothing about the runs of this test.
    for (const char *name : {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "MS_ROLE", "OMPI_MCA_orte_output_filename"})
      ::unsetenv(name);
    if (::chdir(folder.c_str()) != 0)
      ::_exit(99);
    ::dup2(::open("stdout", O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
    ::dup2(::open("stderr", O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
    std::vector<char *> arguments;
    for (std::string &word : words)
      arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(98);
  }
  pid_t start(std::vector<std::string> words) {
    words.insert(words.begin(), MSC_MSRUN);
    return startProgram(std::move(words));
  }
  Outcome finish(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    running.erase(child);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), contentOf(folder / "stdout"),
            withoutCodes(contentOf(folder / "stderr"))};
  }
  Outcome run(std::vector<std::string> words) { return finish(start(std::move(words))); }

  /// Waits until the run has printed `text` on stdout or stderr; false after `limit`.
  bool waitFor(const std::string &text, std::chrono::seconds limit = std::chrono::seconds(20)) const {
    for (auto end = std::chrono::steady_clock::now() + limit; std::chrono::steady_clock::now() < end;) {
      if ((contentOf(folder / "stdout") + contentOf(folder / "stderr")).find(text) != std::string::npos)
        return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

  std::filesystem::path folder;

private:
  std::set<pid_t> running;
};

/// The losses of the lines "epoch: 1 step: 1, loss is 0.5".
inline std::vector<double> lossesOf(const std::string &out) {
  std::vector<double> losses;
  std::regex line("epoch: [0-9]+ step: [0-9]+, loss is (.*)");
  for (std::sregex_iterator it(out.begin(), out.end(), line), end; it != end; ++it)
    losses.push_back(std::stod((*it)[1]));
  return losses;
}

} // namespace msc::test
