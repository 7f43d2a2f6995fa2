//! What is laid out around a workspace, and whether it is as it was.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::world::{World, is_running};

/// Tells the grounds of one process apart.
static MARKS: AtomicU32 = AtomicU32::new(0);

/// What nobody may read out.
pub const SONG: &str = "the canary sings of the sea";

/// A world of an ordinary user, with canaries around the workspace `work`.
///
/// - `outside`: commands can see it, and nobody may change it
/// - `work-evil`, `hidden`, and `user`, which is the home: nobody may read them either
pub struct Ground {
    pub world: World,
    /// Somebody else's process, of the same user.
    victim: Child,
    /// Where everything that leaves would arrive.
    sink: TcpListener,
    /// What stands in the arguments of processes that must not be left.
    mark: String,
    /// Everything outside of the workspace, as it was.
    before: BTreeMap<PathBuf, String>,
}

impl Ground {
    pub fn new(lay_out: &dyn Fn(&Ground)) -> Self {
        let world = World::of_somebody();
        let root = world.root();
        for (path, text) in [
            ("work/main.rs", "fn main() {}\n"),
            ("work/part/x", "a part\n"),
            ("outside/canary", "untouched\n"),
            ("hidden/secret", SONG),
            ("work-evil/secret", SONG),
            ("user/.bashrc", SONG),
            ("user/.ssh/id", SONG),
        ] {
            world.write(path, text);
        }
        let config = format!(
            "[limits]\nstrikes_max = 0\n[policy]\ndeny = ['curl']\n\
             [sandbox]\nreadable = ['{}']\n",
            root.join("outside").display()
        );
        world.write("home/config/config.toml", &config);
        let mut victim = Command::new("sleep");
        victim.arg("600").stdin(Stdio::null());
        world.hand_over(&mut victim);
        let sink = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        sink.set_nonblocking(true).unwrap();
        let ground = Self {
            victim: victim.spawn().unwrap(),
            sink,
            mark: format!(
                "77777.{}0{}",
                std::process::id(),
                MARKS.fetch_add(1, Relaxed)
            ),
            before: BTreeMap::new(),
            world,
        };
        lay_out(&ground);
        let mut ground = ground;
        ground.before = ground.snapshot();
        ground
    }

    /// A program, run by the user of this world before anything else, unfenced.
    pub fn prepare(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.world.work())
            .env("HOME", self.at("user"))
            .env("GIT_CONFIG_NOSYSTEM", "1");
        self.world.hand_over(&mut command);
        let output = command.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.world.root().join(path)
    }

    /// Puts what only this ground knows into the words of a call.
    pub fn fill(&self, text: &str) -> String {
        let address = format!("http://{}/", self.sink.local_addr().unwrap());
        let root = self.world.root();
        text.replace("ROOT", root.to_str().unwrap())
            .replace("SINK", &address)
            .replace("MARK", &self.mark)
            .replace("VICTIM", &self.victim.id().to_string())
    }

    /// Everything outside of the workspace is as it was, nobody has left, nothing runs.
    pub fn is_as_it_was(&mut self) {
        let now = self.snapshot();
        let changed = |(path, text): (&PathBuf, &String)| {
            let is_same = self.before.get(path) == Some(text);
            (!is_same).then(|| path.clone())
        };
        let changed: Vec<PathBuf> = now.iter().filter_map(changed).collect();
        assert!(changed.is_empty(), "changed or new: {changed:?}");
        assert_eq!(now.len(), self.before.len(), "something is gone");
        assert!(self.sink.accept().is_err(), "somebody came");
        assert!(!is_running(&self.mark), "something outlived its command");
        let victim = self.victim.try_wait().unwrap();
        assert!(
            victim.is_none(),
            "a process outside was stopped: {victim:?}"
        );
    }

    /// Every path outside of the workspace and of what Selvedge keeps, and what is there.
    fn snapshot(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let own = [
            "work",
            "home",
            "script.yaml",
            "selvedge",
            "background.stderr",
        ];
        for entry in std::fs::read_dir(self.world.root()).unwrap().flatten() {
            if !own.iter().any(|name| entry.file_name() == *name) {
                look(&entry.path(), &mut found);
            }
        }
        found
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

fn look(path: &Path, found: &mut BTreeMap<PathBuf, String>) {
    use std::os::unix::fs::PermissionsExt;
    let metadata = path.symlink_metadata().unwrap();
    let mode = metadata.permissions().mode();
    let content = match () {
        () if metadata.is_symlink() => std::fs::read_link(path).unwrap().display().to_string(),
        () if metadata.is_file() => {
            let bytes = std::fs::read(path).unwrap();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        () => String::new(),
    };
    found.insert(path.to_owned(), format!("{mode:o} {content}"));
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path).unwrap().flatten() {
            look(&entry.path(), found);
        }
    }
}
