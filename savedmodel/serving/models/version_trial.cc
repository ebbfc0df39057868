#include <keel/savedmodel/serving/models/version_trial.h>

#include <absl/cleanup/cleanup.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <spawn.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <keel/framework/base/errors.h>

namespace keel::serving {
namespace {

constexpr size_t kKeptBytes = 1024;  // of the end of the output

// Starts the command with its output in the pipe, no other files, and no blocked signals.
pid_t start(const std::vector<std::string>& command, int output) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  const absl::Cleanup destroy = [&] {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  };
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, words[0], &files, &attributes, words.data(), environ);
  if (failed != 0) throw IoError(command[0], ": cannot be started: ", std::strerror(failed));
  return pid;
}

// Reads the output until the process has closed it. Returns false after the deadline.
bool read_until(int output, std::chrono::steady_clock::time_point deadline, std::string& kept) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd waiting = {.fd = output, .events = POLLIN, .revents = 0};
    constexpr int kMostMilliseconds = 1000;
    ::poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left.count(), kMostMilliseconds)));
    if (waiting.revents == 0) continue;
    std::array<char, 4096> bytes;
    const ssize_t count = ::read(output, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    kept.append(bytes.data(), static_cast<size_t>(count));
    if (kept.size() > kKeptBytes) kept.erase(0, kept.size() - kKeptBytes);
  }
}

std::string_view last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

void try_command(const std::vector<std::string>& command, double seconds) {
  std::array<int, 2> pipe = {};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    throw IoError("a pipe for the trial of a version cannot be made: ", std::strerror(errno));
  }
  const absl::Cleanup close_output = [&] { ::close(pipe[0]); };
  pid_t pid = 0;
  {
    const absl::Cleanup close_input = [&] { ::close(pipe[1]); };
    pid = start(command, pipe[1]);
  }
  std::string kept;
  const auto span = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
  const bool ended = read_until(pipe[0], std::chrono::steady_clock::now() + span, kept);
  if (!ended) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  const std::string_view line = last_line(kept);
  const std::string said = line.empty() ? "" : str(" (", line, ")");
  if (!ended) {
    throw RuntimeError("loading it for a trial in another process took more than ", seconds, " s",
                       said);
  }
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    throw RuntimeError("loading it for a trial ended the process with signal ", signal, ", ",
                       ::strsignal(signal), said);
  }
}

void begin_trial() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core = {.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  constexpr int kLowest = 19;
  ::setpriority(PRIO_PROCESS, 0, kLowest);
  std::ofstream("/proc/self/oom_score_adj") << 1000;
}

}  // namespace keel::serving
