#include "runtime/executor/RunOptions.h"

#include "runtime/checkpoint/File.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace msc {

std::string lossText(double loss, plan::DataType type) {
  if (std::isnan(loss))
    return "nan"; // whatever its sign
  char digits[64];
  auto end = type == plan::F64 ? std::to_chars(digits, digits + sizeof(digits), loss)
                               : std::to_chars(digits, digits + sizeof(digits), static_cast<float>(loss));
  return std::string(digits, end.ptr);
}

Status writeReport(const std::string &path, const RunReport &report) {
  nlohmann::ordered_json json;
  json["ranks"] = report.ranks;
  json["transport"] = report.transport;
  json["device"] = report.device;
  json["plan_digest"] = report.planDigest;
  json["steps"] = nlohmann::ordered_json::array();
  double total = 0;
  for (const StepRecord &step : report.steps) {
    nlohmann::ordered_json entry;
    entry["epoch"] = step.epoch;
    entry["step"] = step.step;
    // JSON has no nan and no infinity.
    entry["loss"] = std::isfinite(step.loss) ? nlohmann::ordered_json(step.loss) : nlohmann::ordered_json(nullptr);
    entry["ms"] = step.ms;
    total += step.ms;
    json["steps"].push_back(entry);
  }
  double perSecond = total > 0 ? static_cast<double>(report.steps.size()) * 1000.0 / total : 0;
  json["throughput"] = {{"steps_per_second", perSecond},
                        {"samples_per_second", perSecond * static_cast<double>(report.samplesPerStep)}};
  json["peak_bytes_per_rank"] = report.peakBytesPerRank;
  return writeTextFile(path, json.dump(2) + "\n");
}

} // namespace msc
