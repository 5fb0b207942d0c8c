//! Links the two engines that come as Debian's libraries.

fn main() {
    for (feature, library) in [("ROCKSDB", "rocksdb"), ("WIREDTIGER", "wiredtiger")] {
        if std::env::var_os(format!("CARGO_FEATURE_{feature}")).is_some() {
            println!("cargo::rustc-link-lib=dylib={library}");
        }
    }
}
