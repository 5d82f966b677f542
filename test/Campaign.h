// Campaigns: what the short tests do, MSC_LONG=1 does many times more.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace msc::test {

inline bool isLongRun() {
  const char *isLong = std::getenv("MSC_LONG");
  return isLong && *isLong && std::string(isLong) != "0";
}

/// `cases`, or `factor` times as many in a long run.
inline uint64_t campaignCases(uint64_t cases, uint64_t factor = 20) { return isLongRun() ? cases * factor : cases; }

/// What ran, where the log of a test shows it: "campaign: 2000 changed plans, 1220 refused".
inline void printCampaign(uint64_t cases, const std::string &what) {
  std::printf("campaign: %llu %s\n", static_cast<unsigned long long>(cases), what.c_str());
}

} // namespace msc::test
