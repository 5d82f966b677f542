// jemalloc, as processes that compile and end want it: what is freed is kept for the next allocation instead of being given back to
// the system. The tables of a search are large, live shortly and are made over and over: the pages of each would be mapped and cleared
// anew. They are all of different sizes: a table may go into what a much larger one left (by default only up to 64 times as large, and
// a search of a minute held four times the memory).
extern "C" {
extern const char *malloc_conf;
const char *malloc_conf = "dirty_decay_ms:-1,muzzy_decay_ms:-1,lg_extent_max_active_fit:16";
}
