// What communication and computation cost on a machine: the numbers that price redistributions and strategies.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace msc {

/// What one step of a redistribution does. All but Slice communicate.
enum class MoveKind : uint8_t { Slice, AllReduce, ReduceScatter, AllGather, AlltoAll, CollectivePermute, Exchange };
inline constexpr size_t moveKinds = 7;

/// "AllReduce", "StridedSlice", ...: the word that dumps and reports use.
const char *moveKindName(MoveKind kind);

/// How a group of ranks lies in the machine: `size` members inside an aligned block of `block` consecutive ranks.
struct GroupShape {
  int64_t size = 1;
  int64_t block = 1;
};

/// Shape of the groups along `axes` of the device matrix `matrix`.
GroupShape groupShape(const std::vector<int64_t> &matrix, const std::vector<int32_t> &axes);

/// What one kind of collective costs. A rank handles t = received * (1 + ownShare / (members - 1)) bytes: what it receives
/// and, where that takes time too, a share of its own part, which is about received / (members - 1).
///   time = alphaUs + hopUs * (members - 1) + betaUsPerByte * t + beyondCacheUsPerByte * max(0, t - cacheBytes)
struct LinkCost {
  double alphaUs = 0;
  double hopUs = 0;
  double betaUsPerByte = 0;
  double ownShare = 0;
  double cacheBytes = 0;
  double beyondCacheUsPerByte = 0;

  /// Grows with the group and, at equal size, with the bytes.
  double us(int64_t members, double receivedBytes) const;
};

/// One level of the topology: groups that lie inside aligned units of `ranks` ranks use its links.
struct LinkLevel {
  std::string name;
  int64_t ranks = 0; ///< 0: any number; only the outermost level
  std::array<LinkCost, moveKinds> costs{};
};

/// A machine as the cost model sees it. Times are in microseconds, sizes in bytes; the estimates of a preset come from data
/// sheets, measured ones from a calibration run.
struct MachineModel {
  std::string name;
  std::string source;            ///< "measured", "estimated", or the data sheet
  int64_t measuredRanks = 0;     ///< ranks that took part in the measurement; 0: none
  std::vector<LinkLevel> levels; ///< innermost first, never empty
  double flopsPerUs = 1;         ///< of one rank
  double memoryBytesPerUs = 1;   ///< of one rank
  double launchUs = 0;           ///< fixed time of starting one operator

  /// Time of one collective whose busiest rank receives `bytes`; a Slice moves `bytes` through memory.
  double moveUs(MoveKind kind, GroupShape group, double bytes) const;
  /// Roofline: the slower of arithmetic and memory traffic, plus the launch.
  double operatorUs(double flops, double bytesRead, double bytesWritten) const;

  /// The preset "cpu-local": ranks are threads of one process on a CPU.
  static const MachineModel &cpuLocal();
};

} // namespace msc
