// jemalloc, as processes that compile and end want it: what is freed is kept for the next allocation instead of being given back to
// the system. The tables of a search are large, live shortly and are made over and over: the pages of each would be mapped and cleared
// anew.
extern "C" {
extern const char *malloc_conf;
const char *malloc_conf = "dirty_decay_ms:-1,muzzy_decay_ms:-1";
}
