# A Nix flake as a template, to be put at the top of the tree: `nix build` prints the vendorHash that it wants.
# It was never tried with nix.
{
  description = "Talk to a coding agent, one call an input, on the record";
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      each = f: nixpkgs.lib.genAttrs systems (system: f nixpkgs.legacyPackages.${system});
    in {
      packages = each (pkgs: {
        default = pkgs.buildGoModule {
          pname = "perlica";
          version = self.shortRev or "devel";
          src = self;
          vendorHash = pkgs.lib.fakeHash;
          subPackages = [ "cmd/perlica" ];
          env.CGO_ENABLED = 0;
          ldflags = [ "-s" "-w" "-X main.version=${self.shortRev or "devel"}" ];
          doCheck = false;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          postInstall = ''
            installShellCompletion --cmd perlica \
              --bash <($out/bin/perlica completion bash) \
              --zsh <($out/bin/perlica completion zsh) \
              --fish <($out/bin/perlica completion fish)
          '';
        };
      });
    };
}
