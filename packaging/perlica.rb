# The Homebrew formula. It was never tried with brew, and there is no tap.
class Perlica < Formula
  desc "Talk to a coding agent, one call an input, on the record"
  homepage "https://github.com/OWNER/perlica"
  version "NUMBER"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "https://github.com/OWNER/perlica/releases/download/VERSION/perlica_NUMBER_darwin_arm64.tar.gz"
      sha256 "SHA256_DARWIN_ARM64"
    end
    on_intel do
      url "https://github.com/OWNER/perlica/releases/download/VERSION/perlica_NUMBER_darwin_amd64.tar.gz"
      sha256 "SHA256_DARWIN_AMD64"
    end
  end
  on_linux do
    on_arm do
      url "https://github.com/OWNER/perlica/releases/download/VERSION/perlica_NUMBER_linux_arm64.tar.gz"
      sha256 "SHA256_LINUX_ARM64"
    end
    on_intel do
      url "https://github.com/OWNER/perlica/releases/download/VERSION/perlica_NUMBER_linux_amd64.tar.gz"
      sha256 "SHA256_LINUX_AMD64"
    end
  end

  def install
    bin.install "perlica"
    man1.install Dir["man/*.1.gz"]
    bash_completion.install "completions/perlica.bash" => "perlica"
    zsh_completion.install "completions/_perlica"
    fish_completion.install "completions/perlica.fish"
  end

  test do
    assert_match "You said: hello", shell_output("#{bin}/perlica run --provider predictable hello")
  end
end
