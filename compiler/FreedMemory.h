// What happens to memory that a compilation has freed.
#pragma once

namespace msc::compiler {

/// Keeps what is freed for the next allocation instead of giving it back to the system, in processes that compile and end. The tables of
/// a search are large, live shortly and are made over and over: the pages of each would be mapped and cleared anew. Before threads start.
void keepFreedMemory();

} // namespace msc::compiler
