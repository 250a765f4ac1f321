package policy

import (
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// at is the place of most tests.
var at = Place{Dir: "/home/me/work/proj", Home: "/home/me", Temp: []string{"/tmp", "/var/folders/xy/T"}}

// The commands of each tier. A line that ends in a backslash goes on.
var tiers = map[Tier]string{
	Refused: `
rm -r -f /
rm -fr ~
rm -rf $HOME
rm -rf "$HOME"
rm -rf ${HOME}
rm -rf "${HOME:?}"
rm -rf "${HOME}/"
rm -rf ${HOME:-/tmp}
rm -rf ~/
rm -rf ~/*
rm -rf ~/.[!.]*
rm -rf /home/me
rm -rf /HOME/Me
rm -rf /home
rm -rf /home/*
rm -rf /home/somebody
rm -rf /h*
rm -rf ~root
rm -rf ~somebody
git status && rm -rf .
rm -rf *
rm -rf ./*
rm -rf **
rm -rf */
rm -rf */*
rm -rf ?*
rm -rf .* *
rm -rf [a-z]*  [a-z0-9]*
rm -rf !(keep)
rm -rf *.*
rm -rf "$PWD"
rm -rf $(pwd)
rm -rf ~+
rm -rf .
rm -rf ./
rm -rf ..
rm -rf ../*
rm -rf ../proj
rm -rf ../../work
rm -rf ../p*
rm -rf /home/me/work/proj
rm -rf src/..
rm -rf -- /
rm -rf / --no-preserve-root
rm --no-preserve-root -rf /
rm --recursive --force /
rm --rec /
rm / -rf
rm -rf //
rm -rf /.
rm -rf /../
rm -rf /*
rm -rf /{bin,etc}
rm -rf /./././
rm -Rf /
rm -rf {/,}
rm -rf {,/}
rm -rf build {a,/}
rm -rf /usr
rm -rf /etc
rm -rf /usr/*
rm -rf /dev/sda
r\m -rf /
\rm -rf /
"rm" -rf /
'rm' '-rf' '/'
r''m -r"f" /
$'\x72m' -rf /
$'\162\155' -rf $'\u002f'
$(echo rm) -rf /
$(echo rm -rf /)
$(printf 'rm %s /' -rf)
/bin/rm -rf /
/usr/bin/../bin/rm -rf /
RM -rf /
rm${IFS}-rf${IFS}/
X=/; rm -rf $X
X=/; rm -rf "$X"
X="rm -rf /"; $X
X=rm; Y=/; $X -rf $Y
X=r; X+=m; $X -rf /
rm -rf ${X:-/}
rm -rf "${X:=/}"
for d in a / b; do rm -rf $d; done
for d in /*; do rm -rf "$d"; done
while true; do rm -rf ~; done
until rm -rf /; do :; done
if true; then rm -rf /; fi
if rm -rf /; then :; fi
if false; then :; elif true; then :; else rm -rf /; fi
case x in x) rm -rf /;; esac
select x in a; do rm -rf /; done
true || rm -rf /
false | rm -rf /
true; rm -rf /
true & rm -rf /
rm -rf / &
! rm -rf /
time rm -rf /
coproc rm -rf /
(rm -rf /)
{ rm -rf /; }
echo $(rm -rf /)
echo "$(rm -rf /)"
echo "x${y:-$(rm -rf /)}"
A=$(rm -rf /) true
B=$(rm -rf /)
cat <(rm -rf /)
[[ -n $(rm -rf /) ]]
(( $(rm -rf /) ))
echo $(( $(rm -rf /) ))
export X=$(rm -rf /)
a[$(rm -rf /)]=1
echo ` + "`rm -rf /`" + `
echo ${x/$(rm -rf /)/y}
cat <<< $(rm -rf /)
f() { rm -rf /; }; f
f() { rm -rf "$1"; }; f /
f() { "$@"; }; f rm -rf /
function f { rm -rf ~; }
set -- /; rm -rf $1
sudo rm -rf /
sudo -u root -- rm -rf /
sudo -n FOO=bar rm -rf /
sudo -s rm -rf /
sudo sh -c 'rm -rf /'
doas rm -rf /
doas -u root rm -rf /
su -c 'rm -rf /'
su root -c 'rm -rf /'
pkexec rm -rf /
env rm -rf /
env -i PATH=/bin rm -rf /
env -u X A=b rm -rf ~
env -S 'rm -rf /'
env -C / rm -rf home
nice rm -rf /
nice -n 10 rm -rf /
nice -10 rm -rf /
nohup rm -rf / &
timeout 5 rm -rf /
timeout -k 5 -s KILL 10s rm -rf /
command rm -rf /
builtin command rm -rf /
exec rm -rf /
exec -a x rm -rf /
busybox rm -rf /
stdbuf -oL rm -rf /
ionice -c 3 rm -rf /
setsid rm -rf /
sudo env nice nohup timeout 5 rm -rf /
eval rm -rf /
eval "rm -rf /"
eval 'eval "rm -rf /"'
eval "$(echo rm -rf /)"
sh -c 'rm -rf /'
bash -lc 'rm -rf ~'
bash -c "rm -rf $HOME"
bash -o pipefail -ec 'rm -rf /'
zsh -c 'rm -rf /'
sh -c 'sh -c "rm -rf /"'
sh -c 'rm -rf "$1"' _ /
sh -c 'rm -rf "$@"' _ a /
X=/ sh -c 'rm -rf $X'
export X=/; sh -c 'rm -rf $X'
echo 'rm -rf /' | sh
echo 'rm -rf /' | sudo bash -s
printf 'rm -rf %s' / | sh
echo rm -rf / | cat | bash
sh <<< 'rm -rf /'
bash <(echo 'rm -rf /')
. <(echo 'rm -rf /')
source /dev/stdin <<< 'rm -rf /'
echo 'rm -rf /' | tee x | sh
echo / | xargs rm -rf
echo ~ | xargs -n1 rm -rf
printf '/\n' | xargs -I{} rm -rf {}
echo / | xargs -I X sh -c 'rm -rf X'
echo / | xargs sudo rm -rf
ls | xargs rm -rf
ls -A ~ | xargs rm -rf
find . | xargs rm -rf
find . -print0 | xargs -0 rm -rf
parallel rm -rf ::: /
watch rm -rf /
trap 'rm -rf /' EXIT
alias ls='rm -rf /'
ssh host 'rm -rf /'
flock lock rm -rf /
flock lock -c 'rm -rf /'
script -c 'rm -rf /' log
chroot /mnt rm -rf /
git -c alias.x='!rm -rf /' x
git submodule foreach 'rm -rf /'
cd / && rm -rf *
cd /; rm -rf ./*
cd && rm -rf *
cd ~ && rm -rf .
cd ..; rm -rf proj
cd ../.. && rm -rf work
cd /home && rm -rf me
cd src && rm -rf ..
cd src && rm -rf ../*
pushd / && rm -rf *
(cd / && rm -rf *)
cd / || exit 1; rm -rf *
set -e; cd /; rm -rf *
cd /tmp && cd / && rm -rf *
cd -- / && rm -rf *
find / -delete
find / -exec rm -rf {} +
find / -exec rm -rf {} \;
find . -delete
find -delete
find . -type f -delete
find . -mindepth 1 -delete
find . -name '*' -delete
find . ! -name keep -delete
find . -name x -o -delete
find . \( -name x -o -type f \) -delete
find . -exec rm -rf {} +
find . -type f -exec rm {} +
find ~ -maxdepth 1 -exec rm -rf {} \;
find . -exec sh -c 'rm -rf "$1"' _ {} \;
find "$HOME" -delete
find src -name x -exec rm -rf / \;
dd if=/dev/zero of=/dev/sda
dd of=/dev/nvme0n1 if=x bs=1M
sudo dd if=x.iso of=/dev/disk2
mkfs.ext4 /dev/sda
mkfs -t ext4 /dev/sda1
mkfs.ext4 -F /dev/mapper/root
mkswap /dev/sda2
wipefs -a /dev/sda
sgdisk --zap-all /dev/sda
parted /dev/sda mklabel gpt
blkdiscard /dev/nvme0n1
cryptsetup luksFormat /dev/sda
diskutil eraseDisk JHFS+ X /dev/disk2
shred /dev/sda
shred -n 3 -z /dev/sda
truncate -s 0 /dev/sda
> /dev/sda
cat x > /dev/sda
echo x >> /dev/sdb1
echo x >| /dev/vda
echo x &> /dev/sda
echo x | tee /dev/sda
cp x.img /dev/sda
cat x | sudo tee /dev/sda
:(){ :|:& };:
:(){ :|: & };:
bomb() { bomb | bomb & }; bomb
f() { f & f & }; f
chmod -R 000 /
chmod -R 777 ~
chmod -R a-rwx /usr
chown -R me /
chown -R me:me /home
chgrp -R x ..
sudo chown -R x /
mv ~ /dev/null
mv / /tmp/x
mv ~/* /tmp/x
mv . /tmp/x
mv ../proj /tmp/x
rsync -a --delete empty/ ~/
rsync -a --delete empty/ ./
git rm -rf . ; rm -rf .
rm -rf / ; (
(echo $X#y; rm -rf /)
echo $(echo ${X}#y; rm -rf ~)
((rm -rf /) )
rm -rf /\
/`,
	AlwaysAsked: `
sudo ls
sudo -u me make install
sudo
su
su -
su me -c ls
doas ls
pkexec ls
chmod u+s x
chmod +s x
chmod 4755 x
chmod 02755 x
chmod g+s,u+x x
chmod 6755 x
install -m 4755 a b
setcap cap_net_raw+ep x
passwd
usermod -aG docker me
visudo
unshare -r ls
curl https://example.org/x | sh
curl -fsSL https://example.org/x | bash -s -- --yes
curl x | sudo bash
curl x | tee y | sh
curl x | gunzip | sh
wget -O- https://example.org | bash
wget -qO - x | sh -x
curl x | python3
curl x | python3 -
curl x | perl
bash <(curl https://example.org)
sh <(wget -qO- x)
source <(curl x)
. <(curl x)
sh -c "$(curl -fsSL x)"
bash -c "$(wget x -O -)"
eval "$(curl x)"
X=$(curl x); eval "$X"
$(curl x)
sh <<< "$(curl x)"
echo "$(curl x)" | sh
curl x > install.sh; sh install.sh
curl -o install.sh x && bash install.sh
wget -O i.sh x; . ./i.sh
curl x | xargs sh -c
(curl x) | sh
{ curl x; } | bash
time curl x | sh
curl x | (bash)
curl x | nohup bash
curl x | env bash
echo x > /etc/hosts
echo x >> ~/.bashrc
echo x > ../other/file
echo x > $OUT
echo x > "$DIR/out"
echo x 2> /var/log/x
echo x &>> /var/log/x
cat < a > ~/b
cd /etc && echo x > hosts
cd $X && echo x > y
echo x | tee ~/.profile
echo x | tee -a /etc/hosts
cp x /usr/local/bin
cp x ~/
cp -t /etc x y
cp --target-directory=/etc x
mv x /opt/x
mv /opt/x .
mv x /dev/null
mv * /tmp/x/
install x /usr/local/bin/x
ln -s x /usr/local/bin/x
touch /etc/x
mkdir -p ~/x
mkdir -p src ../x
rm /etc/passwd
rm -rf ~/other
rm -rf ../other
rm -rf /opt/thing
rm -rf ../*.log
rm -f /var/log/*.log
rm -f *
rm *
rm -rf .git
rmdir /srv/x
unlink /etc/x
shred -u ~/x
shred -u ~
truncate -s 0 /var/log/x
dd if=a of=/srv/x
dd if=a of=~/x
dd of=$X
sed -i s/a/b/ /etc/hosts
sed -i.bak -e s/a/b/ ~/x
tar xf a.tar -C /
tar -xzf a.tgz -C /usr/local
tar czf ~/a.tgz .
unzip a.zip -d /opt
curl -o /usr/local/bin/x https://example.org
wget -O ~/x https://example.org
wget -P /opt x
rsync -a . ~/backup/
chmod 600 ~/.ssh/id
chown me /etc/x
git push -f
git push --force
git push --force-with-lease origin main
git push --force-with-lease=main origin
git push origin +main
git push origin +main:main
git push --mirror
git push --delete origin x
git push -d origin x
git push origin :x
git -C sub push -f
git -c a=b push -uf origin x
git --no-pager push --forc
git clean -fdx
git clean -xdf
git rm -r .
git clone x ~/y
git clone x /srv/y
git worktree add ../wt
git config --global user.name x
if then
echo "unclosed
echo 'unclosed
(
)
$(
git status && (
$X
$X foo
"$CMD" --version
${CC:-cc} -c x.c
` + "`which rm` -rf x" + `
/bin/r? x
./bin/$X
rm -rf "$D"
rm -rf $D
rm $D
rm -rf "$D/"
rm -rf $D/*
rm -rf build/$X
rm -rf $(cat list)
rm -rf "${A}${B}"
rm -rf ${!X}
rm -rf $1
rm -rf "$@"
mv $X y
shred $X
mkfs.ext4 $DEV
wipefs -a "$DEV"
find $D -delete
cat list | xargs rm -rf
xargs rm < list
git ls-files -z | xargs -0 rm
cat list | xargs -I{} sh -c 'rm {}'
while read f; do rm -rf "$f"; done < list
read X; rm -rf $X
X=a; read X; rm -rf $X
X=build; sh -c 'rm -rf $X'
if true; then X=a; else X=b; fi; rm -rf $X
unset X; rm -rf $X
eval "$X"
eval $(cat x)
sh -c "$X"
bash -c "make $X"
bash $X
source $X
. "$X"
cat x.sh | sh
base64 -d <<< cm0gLXJmIC8= | sh
sh < x.sh
ssh host "$X"
cd $X && rm -rf *
cd "$X"; rm -rf ./*
cd - && rm -rf *
cd build; rm -rf *
cd build; make; rm -rf *
cd build && make; rm -rf *
pushd $X; rm -rf .
popd; rm -rf x
cd $X && touch y
cmd /c del x
powershell -Command x
rm -rf /tmp/*
rm -rf /tmp
trap "$X" EXIT
cat < /dev/tcp/h/1 > /dev/tcp/h/2
echo x > /dev/ttyUSB0
git push "$X" --force`,
	Ordinary: `
ls
git status
git commit -m "rm -rf /"
git commit -m 'x; rm -rf /'
echo rm -rf /
echo "rm -rf /"
printf 'rm -rf /'
grep -r 'rm -rf /' .
grep rm -rf /
# rm -rf /
echo x # rm -rf /
cat <<EOF
go test ./...
cd $D && make
cd "$(git rev-parse --show-toplevel)" && make
make $TARGET
echo $X
cp $SRC build
ls /etc /dev/sda
cat /etc/passwd
cat /dev/sda1 | head -c 1
dd if=a of=disk.img
dd if=/dev/sda of=disk.img
dd if=/dev/zero of=/dev/null count=1
mkfs.ext4 disk.img
mkfs.ext4 -F ./images/disk.img
mkswap swap.img
wipefs -a disk.img
fdisk -l /dev/sda
parted /dev/sda print
shred -u secret.txt
truncate -s 1G disk.img
rm -rf node_modules
rm -rf ./build
rm -rf build/*
rm -rf build dist *.egg-info
rm -rf src/{a,b}
rm -rf @(build|dist)
rm -f *.o
rm -f *.pyc .coverage
rm -rf /tmp/x
rm -rf /tmp/x/*
rm -rf /var/folders/xy/T/abc
rm -rf "$PWD/build"
rm -rf "$HOME/work/proj/build"
rm -rf ~/work/proj/build
rm -rf $(echo build)
rm -rf '*'
rm -rf "~"
rm -rf \*
rm -rf '$HOME'
rm file
rm ./a ./b
X=build; rm -rf $X
X=build; rm -rf "$X/obj"
export X=build; sh -c 'rm -rf $X'
for d in a b; do rm -rf $d; done
for i in {1..3}; do rm -rf build$i; done
for f in *.txt; do mv "$f" "${f%.txt}.md"; done
f() { echo hi; }; f
cd build && rm -rf *
cd build && rm -rf ./* && cd ..
cd build || exit 1; rm -rf *
set -e; cd build; rm -rf *
(cd build && rm -rf *); ls
cd /tmp && rm -rf x
cd /tmp/x && rm -rf *
cd / && ls
cd src && rm -rf ../build
mv a b
mv src/* lib/
mv ./a /tmp/b
mv *.c src/
cp a b
cp -r a /tmp/x
cp /etc/hosts .
ln -s a b
touch a
mkdir -p a/b
tee out.txt
make 2>&1 | tee log
make > log 2>&1
make &> log
echo x > out
echo x > /dev/null
echo x >/dev/null 2>&1
echo x 2>/dev/stdout
echo x > /dev/stderr
echo x > /dev/tty
echo x > /dev/fd/2
echo x >&2
echo x > /tmp/out
cat /dev/urandom | head -c 8
head -c 8 < /dev/zero
exec 3>&1
find . -name '*.pyc' -delete
find . -type d -name node_modules -exec rm -rf {} +
find . -name x -print0 | xargs -0 rm -rf
find src -delete
find /tmp/x -delete
find / -name x
find . -path ./node_modules -prune -o -name '*.o' -delete
find . \( -name a -o -name b \) -delete
find . -empty -delete
find . -type f -exec grep x {} +
find . -type f | xargs grep x
ls | xargs -n1 echo
ls | xargs wc -l
xargs grep rm < list
echo build | xargs rm -rf
chmod +x run.sh
chmod 755 run.sh
chmod -R u+w .
chmod -R 755 build
chown -R me .
chmod 0644 a
chmod 1777 dir
git push
git push origin main
git push -u origin feature
git push origin HEAD:main
git push --follow-tags
git push origin $BRANCH
git clean -n
git clean -nfd
git reset --hard
git checkout .
git rm file
git rm -r --cached .
git clone https://example.org/x
git clone x sub/y
git config user.name x
git config --global --list
git stash drop
curl https://example.org
curl -o out.json https://example.org
curl x | jq .
curl x | grep sh
curl x | python3 -m json.tool
curl x | python3 -c 'import sys'
wget https://example.org/a.tgz
wget -qO- x | tar xz
tar xzf a.tgz
tar xzf a.tgz -C build
tar czf a.tgz .
unzip a.zip -d build
sh script.sh
bash ./run.sh arg
sh -c 'echo hi'
bash -lc 'go test ./...'
bash -c 'cd x && make'
echo 'echo hi' | sh
sh <<< 'ls'
source venv/bin/activate
. ./env.sh
python3 -c 'print(1)'
python3 x.py
node -e '1'
nice make
env FOO=bar make
FOO=bar make
timeout 60 go test ./...
time make
nohup ./server &
command -v rm
command -v sudo
which sudo
man rm
type rm
npm run rm
docker run --rm x
sed -i s/a/b/ file
sed -n 1,2p /etc/hosts
sed -i '' -e s/a/b/ src/x.go
rsync -a src/ build/
rsync -a --delete src/ build/
rsync -a . host:/srv/x
scp a host:/srv/x
[ -d build ] && rm -rf build
[[ -f x ]] || touch x
test -d a
if [ -f x ]; then cat x; fi
case $X in a) ls;; esac
while read l; do echo "$l"; done < list
i=$((i+1))
let i++
a=(1 2 3)
echo "${a[@]}"
echo ${#X}
true
:
! grep x y
ssh host ls
git submodule foreach 'git status'
npm install && npm test
trap 'rm -f tmp.txt' EXIT
alias ll='ls -l'
sleep 1 & wait
kill 123`,
}

// TestTiers kills the mutants that drop a case of the walker or of the judges.
func TestTiers(t *testing.T) {
	count := 0
	for want, list := range tiers {
		list = strings.ReplaceAll(list, "\\\n", "\x01")
		for command := range strings.SplitSeq(strings.TrimSpace(list), "\n") {
			command = strings.ReplaceAll(command, "\x01", "\\\n")
			if command == "cat <<EOF" {
				command += "\nrm -rf /\nEOF"
			}
			count++
			v := classify(command, at)
			if v.Tier != want {
				t.Errorf("%s: %s (%s), want %s", command, v.Tier, v.Why, want)
			}
			if (v.Tier == Ordinary) != (v.Why == "") || (v.Tier == Refused) != (v.Word != "") {
				t.Errorf("%s: incomplete verdict %+v", command, v)
			}
		}
	}
	if count < 400 {
		t.Errorf("only %d commands", count)
	}
}

func TestTiersOfLongerScripts(t *testing.T) {
	tests := []struct {
		command string
		want    Tier
	}{
		{"sh <<EOF\nrm -rf /\nEOF", Refused},
		{"sh <<'EOF'\nrm -rf ~\nEOF", Refused},
		{"bash -s <<-EOF\n\trm -rf $HOME\n\tEOF", Refused},
		{"sh <<EOF\nrm -rf $X\nEOF", AlwaysAsked},
		{"sh <<EOF\necho hi\nEOF", Ordinary},
		{"cat > x <<EOF\nrm -rf /\nEOF", Ordinary},
		{"cat > x <<EOF\n$(rm -rf /)\nEOF", Refused},
		{"cat > x <<'EOF'\n$(rm -rf /)\nEOF", Ordinary},
		{"cat <<EOF | sh\nrm -rf /\nEOF", Refused},
		{"cat > /etc/x <<EOF\nEOF", AlwaysAsked},
		{"rm -rf /\n)", Refused},
		{"echo a\nrm -rf ~\n", Refused},
		{"echo -e 'rm\\x20-rf /' | sh", Refused},
		{"X='eval \"$X\"; eval \"$X\"'; eval \"$X\"", AlwaysAsked},
		{strings.Repeat("(", 4000) + "ls" + strings.Repeat(")", 4000), AlwaysAsked},
		{"echo " + strings.Repeat("x", maxText), AlwaysAsked},
		{"echo {1..100000000}", Ordinary},
		{"rm -rf {a..z}{a..z}{a..z}", AlwaysAsked},
		{"echo \x00", AlwaysAsked},
		{"00&0\xd1", AlwaysAsked}, // the parser yields twice here
		{"", Ordinary},
	}
	for _, test := range tests {
		if v := classify(test.command, at); v.Tier != test.want {
			t.Errorf("%.80q: %s (%s), want %s", test.command, v.Tier, v.Why, test.want)
		}
	}
}

// TestHugeWork kills the mutants without a bound: each command is small and asks for
// more work or memory than there is.
func TestHugeWork(t *testing.T) {
	substitutions, whiles, loops, functions := "echo x", "ls", "ls", "f() { ls; }; "
	for i := range 30 {
		whiles = "while " + whiles + "; do ls; done"
		name := "f" + strings.Repeat("y", i)
		functions += name + "y() { " + name + "; " + name + "; }; "
		if i < 8 {
			substitutions = "echo {a,b}{c,d}{e,f}{g,h}{i,j}{k,l}$(" + substitutions + ")"
			loops = "for i in {a,b,c,d,e}{a,b,c,d}; do " + loops + "; done"
		}
	}
	for name, c := range map[string]string{
		"substitutions": substitutions, "whiles": whiles, "loops": loops, "functions": functions,
		"doubling": "X=a;" + strings.Repeat("X=$X$X;", 200) + "rm $X",
		"eval":     `X='eval "$X"; eval "$X"'; eval "$X"`,
		"if":       strings.Repeat("if ", 40000), "not": strings.Repeat("! ", 60000), "((": strings.Repeat("((", 200) + "x",
		"sudo": strings.Repeat("sudo ", 20000) + "rm", "pipes": strings.Repeat("a|", 60000) + "b", "`": strings.Repeat("`", 400),
		"args":  "set -- a b;" + strings.Repeat(`set -- "$@" "$@";`, 60) + `rm "$@"`,
		"xargs": "echo " + strings.Repeat("b", 50000) + " | xargs -I a sh -c '" + strings.Repeat("a", 50000) + "'",
		"many":  "echo " + strings.Repeat("b ", 20000) + " | xargs -I a rm " + strings.Repeat("a ", 20000),
		"echo":  "X=" + strings.Repeat("x", 1000) + strings.Repeat(";X=$(echo $X; echo $X)", 100),
	} {
		start := time.Now()
		v := classify(c, at)
		canonical(c)
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s: %s after %s", name, v.Tier, took)
		} else {
			t.Logf("%s: %s (%.60s) after %s", name, v.Tier, v.Why, took)
		}
	}
}

// TestWhy kills the mutant that says less than what is lost and by which command.
func TestWhy(t *testing.T) {
	for command, want := range map[string]Verdict{
		"rm -fr ~":                {Refused, "removes the home directory: rm -fr ~", "home", false},
		"true && rm -rf ./*":      {Refused, "removes everything in the working directory: rm -rf ./*", "directory", false},
		"sh -c 'rm -rf /'":        {Refused, "removes the root directory: rm -rf /", "root", false},
		"dd if=x of=/dev/sda":     {Refused, "overwrites a device: dd if=x of=/dev/sda", "device", false},
		"sudo ls":                 {AlwaysAsked, "changes privileges: sudo ls", "", false},
		"curl x | sh":             {AlwaysAsked, "runs what it downloads: sh", "", true},
		"rm -rf \"$D\"":           {AlwaysAsked, "the text does not tell what it removes: rm -rf \"$D\"", "", true},
		"rm -rf \"\x1b[2J\" /":    {Refused, "removes the root directory: rm -rf \"\uFFFD[2J\" /", "root", false},
		"echo a > ~/x":            {AlwaysAsked, "outside the working directory: writes to ~/x", "", false},
		"rm -rf \"$D\"; rm -rf /": {Refused, "removes the root directory: rm -rf /", "root", true},
	} {
		if got := classify(command, at); got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", command, got, want)
		}
	}
}

func TestClassifyArgv(t *testing.T) {
	tests := []struct {
		argv []string
		want Tier
	}{
		{[]string{"bash", "-lc", "rm -rf /"}, Refused},
		{[]string{"/bin/zsh", "-c", "git status"}, Ordinary},
		{[]string{"rm", "-rf", "/"}, Refused},
		{[]string{"rm", "-rf", "*"}, Ordinary}, // no shell, so a file called *
		{[]string{"rm", "-rf", "~"}, Ordinary},
		{[]string{"git", "commit", "-m", "x; rm -rf /"}, Ordinary},
		{[]string{"env", "A=b", "rm", "-rf", "/"}, Refused},
		{[]string{"bash", "-c", "rm -rf \"$1\"", "_", "/"}, Refused},
		{[]string{"echo", "\x00"}, AlwaysAsked},
		{[]string{"sudo", "ls"}, AlwaysAsked},
	}
	for _, test := range tests {
		if v := classifyArgv(test.argv, at); v.Tier != test.want {
			t.Errorf("%q: %s (%s), want %s", test.argv, v.Tier, v.Why, test.want)
		}
	}
}

// TestPlaces kills the mutants that take the working directory, the home or the
// temporary directories from anywhere but the place.
func TestPlaces(t *testing.T) {
	tests := []struct {
		place   Place
		command string
		want    Tier
	}{
		{Place{}, "rm -rf x", AlwaysAsked},
		{Place{}, "rm -rf ~", AlwaysAsked},
		{Place{}, "rm -rf /", Refused},
		{Place{}, "ls", Ordinary},
		{Place{Dir: "/w"}, "rm -rf /tmp/x", AlwaysAsked},
		{Place{Dir: "/w/"}, "rm -rf x", Ordinary},
		{Place{Dir: "/w"}, "rm -rf /w2", AlwaysAsked},
		{Place{Dir: "/tmp/a/b", Temp: []string{"/tmp"}}, "rm -rf /tmp/a", Refused},
		{Place{Dir: "/tmp/a/b", Temp: []string{"/tmp"}}, "rm -rf /tmp/*", Refused},
		{Place{Dir: "/tmp/a/b", Temp: []string{"/tmp"}}, "rm -rf /tmp/c", Ordinary},
		{Place{Dir: "/home/me", Home: "/home/me"}, "rm -rf *", Refused},
		{Place{Dir: "/home/me", Home: "/home/me"}, "touch x", Ordinary},
		{Place{Dir: "/home/a[b]/p", Home: "/home/a[b]"}, "rm -rf *", Refused},
		{Place{Dir: "/home/a[b]/p", Home: "/home/a[b]"}, "rm -rf x*", Ordinary},
		{Place{Dir: "/home/a b/p", Home: "/home/a b"}, "rm -rf ~", Refused},
		{Place{Dir: "/Users/me/p", Home: "/Users/me"}, "rm -rf /users/me", Refused},
	}
	for _, test := range tests {
		if v := classify(test.command, test.place); v.Tier != test.want {
			t.Errorf("%+v: %s: %s (%s), want %s", test.place, test.command, v.Tier, v.Why, test.want)
		}
	}
}

// wrapped are ways to run c that must not change that c is refused.
func wrapped(c string) ([]string, error) {
	q, err := syntax.Quote(c, syntax.LangBash)
	if err != nil {
		return nil, err
	}
	return []string{
		"true && (" + c + "\n)", "false || {\n" + c + "\n}", "if true; then\n" + c + "\nfi", "echo $(" + c + "\n)",
		"sh -c " + q, "sudo sh -c " + q, "env A=b nice bash -lc " + q, "eval " + q, "timeout 5 sh -c " + q,
		"while true; do\n" + c + "\ndone", "f() {\n" + c + "\n}; f", "(" + c + "\n) | cat", "xargs sh -c " + q,
	}, nil
}

func TestWrappingKeepsRefused(t *testing.T) {
	for c := range strings.SplitSeq(strings.TrimSpace(tiers[Refused]), "\n") {
		if strings.HasSuffix(c, "\\") || c == "/" || strings.HasSuffix(c, "; (") || strings.HasPrefix(c, "rm -rf ~+") {
			continue
		}
		all, err := wrapped(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, outer := range all {
			if v := classify(outer, at); v.Tier != Refused {
				t.Errorf("%s: %s (%s)", outer, v.Tier, v.Why)
			}
		}
	}
}

// FuzzClassify holds that nothing panics or hangs, that a verdict is complete, and
// that a refused command stays refused inside another.
func FuzzClassify(f *testing.F) {
	for _, list := range tiers {
		for c := range strings.SplitSeq(list, "\n") {
			f.Add(c)
		}
	}
	f.Fuzz(func(t *testing.T, c string) {
		v := classify(c, at)
		if (v.Tier == Refused) != (v.Word != "") || (v.Tier == Ordinary) != (v.Why == "") {
			t.Fatalf("%q: incomplete %+v", c, v)
		}
		canonical(c)
		simpleCalls(c, at)
		if _, _, err := parse(c); v.Tier != Refused || err != nil || strings.Contains(c, "<<") || len(c) > 2000 {
			return
		}
		all, err := wrapped(c)
		if err != nil {
			return
		}
		for _, outer := range all {
			if _, _, err := parse(outer); err != nil {
				continue
			}
			if o := classify(outer, at); o.Tier != Refused {
				t.Errorf("%q is refused, %q is %s (%s)", c, outer, o.Tier, o.Why)
			}
		}
	})
}

func classify(command string, at Place) Verdict { return analyse(Command{Text: command}, at).verdict }

func classifyArgv(argv []string, at Place) Verdict { return analyse(Command{Argv: argv}, at).verdict }
