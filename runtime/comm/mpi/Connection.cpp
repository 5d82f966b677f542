#include "runtime/comm/mpi/Connection.h"

#include "runtime/messages/Catalogue.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sched.h>
#include <thread>

namespace msc::comm {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// MPI counts are ints: longer messages go in parts.
constexpr int64_t kMessageBytes = int64_t{1} << 30;
constexpr int kTag = 1;

Connection::Connection(SharedRun &run, int64_t ranks) : run(run), ranks(ranks) {
  MPI_Comm_dup(MPI_COMM_WORLD, &data);
  MPI_Comm_dup(MPI_COMM_WORLD, &failures);
  MPI_Comm_set_errhandler(data, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(failures, MPI_ERRORS_RETURN);
}

void Connection::close() {
  MPI_Comm_free(&data);
  MPI_Comm_free(&failures);
}

Status Connection::check(int code, const char *what) {
  if (code == MPI_SUCCESS)
    return Status::ok();
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return Error{ExitCode::PeerFailed, std::string("MPI failed in ") + what + ": " + std::string(text, length), ""};
}

void Connection::send(const void *bytesToSend, int64_t bytes, int64_t rank) {
  used = true;
  auto *from = static_cast<const char *>(bytesToSend);
  do {
    int64_t part = std::min(bytes, kMessageBytes);
    requests.emplace_back();
    if (Status done = check(MPI_Isend(from, static_cast<int>(part), MPI_BYTE, static_cast<int>(rank), kTag, data,
                                      &requests.back()),
                            "MPI_Isend");
        !done)
      trouble = done.error().message;
    from += part;
    bytes -= part;
  } while (bytes > 0);
}

void Connection::receive(void *bytesToReceive, int64_t bytes, int64_t rank) {
  used = true;
  auto *to = static_cast<char *>(bytesToReceive);
  do {
    int64_t part = std::min(bytes, kMessageBytes);
    receives.push_back({requests.size(), rank});
    requests.emplace_back();
    if (Status done = check(MPI_Irecv(to, static_cast<int>(part), MPI_BYTE, static_cast<int>(rank), kTag, data,
                                      &requests.back()),
                            "MPI_Irecv");
        !done)
      trouble = done.error().message;
    to += part;
    bytes -= part;
  } while (bytes > 0);
}

Status Connection::abandon() {
  for (const Receive &receive : receives)
    if (requests[receive.request] != MPI_REQUEST_NULL)
      MPI_Cancel(&requests[receive.request]);
  spreadFailure();
  settle();
  run.exit();
  return *run.failure();
}

/// What has been matched reads and writes the memory of the operation, which may be gone when its caller has the error: it is let
/// through. A peer does the same, and takes no longer unless it is gone; what nobody takes any more is left behind sooner, so that this
/// rank can still say what it knows.
void Connection::settle() {
  constexpr milliseconds forReceives{500}, forAll{100};
  WaitingTime time;
  while (true) {
    int completed = 0;
    std::vector<int> which(requests.size());
    if (MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &completed, which.data(), MPI_STATUSES_IGNORE) != MPI_SUCCESS ||
        completed == MPI_UNDEFINED) // nothing is left
      return;
    const bool receiving = std::any_of(receives.begin(), receives.end(),
                                       [&](const Receive &receive) { return requests[receive.request] != MPI_REQUEST_NULL; });
    if (time.sinceStart() >= (receiving ? forReceives : forAll))
      return;
    sched_yield();
  }
}

Error Connection::stalled(const OperationRecord &what, milliseconds waited) {
  std::vector<int64_t> absent;
  for (const Receive &receive : receives) {
    int arrived = 0;
    MPI_Request_get_status(requests[receive.request], &arrived, MPI_STATUS_IGNORE);
    if (!arrived && (absent.empty() || absent.back() != receive.rank))
      absent.push_back(receive.rank);
  }
  return {ExitCode::Timeout,
          what.str() + " made no progress for " + std::to_string(waited.count() / 1000) + "." +
              std::to_string(waited.count() / 100 % 10) + " s: waiting for " +
              (absent.empty() ? "peers to receive" : rankList(absent)),
          "raise --timeout if the ranks are only slow"};
}

Status Connection::wait(const OperationRecord &what) {
  WaitingTime time;
  milliseconds nextReport = run.stallAfter;
  bool slow = false;
  statuses.resize(requests.size());
  for (int64_t poll = 0;; ++poll) {
    int done = 0;
    int code = trouble.empty() ? MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, statuses.data())
                               : MPI_SUCCESS;
    if (Status good = check(code, "MPI_Testall"); !good)
      trouble = good.error().message;
    if (!trouble.empty()) {
      run.fail(run.rank(), {ExitCode::PeerFailed, trouble + "; in " + what.str(), ""});
      return abandon();
    }
    if (done)
      break;
    if (run.hasFailed())
      return abandon();
    // On a busy machine 64 yields take seconds: who has waited for a millisecond looks every time.
    bool due = poll % 64 == 63;
    if (due || slow) {
      spreadFailure();
      milliseconds waited = time.sinceStart();
      if (run.timeout.count() && waited >= run.timeout)
        run.fail(-1, stalled(what, waited));
      if (waited >= nextReport) {
        fprintf(stderr, "%s\n", messages::translatedLine("msrun: warning: " + stalled(what, waited).message).c_str());
        nextReport *= 4;
      }
      slow = waited.count() >= 1;
      // Now and then the core is left to those who compute.
      if (due && slow)
        std::this_thread::sleep_for(std::chrono::microseconds(waited.count() >= 20 ? 500 : 50));
    }
    sched_yield();
  }
  counts.clear();
  for (const Receive &receive : receives) {
    int count = 0;
    MPI_Get_count(&statuses[receive.request], MPI_BYTE, &count);
    counts.push_back(count);
  }
  requests.clear();
  receives.clear();
  return Status::ok();
}

bool Connection::leaveTogether(milliseconds limit) {
  MPI_Request request;
  if (MPI_Ibarrier(failures, &request) != MPI_SUCCESS)
    return false;
  std::optional<Clock::time_point> until;
  for (int all = 0;; std::this_thread::sleep_for(std::chrono::microseconds(200))) {
    MPI_Test(&request, &all, MPI_STATUS_IGNORE);
    if (all)
      return true;
    spreadFailure();
    if (!until && run.hasFailed())
      until = Clock::now() + limit;
    if (until && Clock::now() >= *until)
      return false;
  }
}

void Connection::spreadFailure() {
  int arrived = 0;
  MPI_Status status;
  while (!run.hasFailed() && MPI_Iprobe(MPI_ANY_SOURCE, kTag, failures, &arrived, &status) == MPI_SUCCESS && arrived) {
    FailureMessage heard;
    MPI_Recv(&heard, sizeof(heard), MPI_BYTE, status.MPI_SOURCE, kTag, failures, MPI_STATUS_IGNORE);
    told = true;
    run.fail(heard.rank, {static_cast<ExitCode>(heard.code), heard.message, heard.help}, SharedRun::Reporter::Elsewhere);
  }
  if (!run.hasFailed() || told || !run.recordedHere())
    return;
  told = true;
  auto [rank, error] = run.firstCause();
  news = {rank, static_cast<int32_t>(error.code), {}, {}};
  strncpy(news.message, error.message.c_str(), sizeof(news.message) - 1);
  strncpy(news.help, error.help.c_str(), sizeof(news.help) - 1);
  std::vector<MPI_Request> sends;
  for (int64_t peer = 0; peer < ranks; ++peer) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (!run.shares(peer) && MPI_Isend(&news, sizeof(news), MPI_BYTE, static_cast<int>(peer), kTag, failures, &request) == MPI_SUCCESS)
      sends.push_back(request);
  }
  // Who lives has it soon; a peer that does not answer must not keep this rank from saying what it knows.
  constexpr milliseconds limit{100};
  for (const Clock::time_point until = Clock::now() + limit; !sends.empty() && Clock::now() < until; sched_yield()) {
    for (MPI_Request &request : sends)
      if (int sent = 0; MPI_Test(&request, &sent, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        request = MPI_REQUEST_NULL; // as one that is done
    std::erase(sends, MPI_REQUEST_NULL);
  }
  for (MPI_Request &request : sends)
    MPI_Request_free(&request);
}

} // namespace msc::comm
