package email

import (
	"context"
	"fmt"

	"github.com/perlica/perlica/service/channel"
)

// Check logs in to both servers. It asks the server for sent mails whether an address with a plus sign exists, and
// sends nothing.
func (c *Channel) Check(ctx context.Context) []channel.Finding {
	return append(c.checkIMAP(ctx), c.checkSMTP(ctx)...)
}

func (c *Channel) checkIMAP(ctx context.Context) []channel.Finding {
	box, err := c.open(ctx)
	if err != nil {
		return []channel.Finding{{Name: "IMAP", Detail: err.Error(), Fails: true, Next: "compare service.email.imap, " +
			"service.email.user and the password with the settings of your mailbox; many makers want an app password"}}
	}
	defer box.close()
	list := []channel.Finding{{Name: "IMAP", Detail: fmt.Sprintf("the mailbox of %s can be read", c.opt.IMAP.User)}}
	if !box.idle {
		return append(list, channel.Finding{Name: "IDLE", Detail: fmt.Sprintf("the server has none, so new mails come at "+
			"most %s late", c.opt.Every)})
	}
	return append(list, channel.Finding{Name: "IDLE", Detail: "new mails come at once"})
}

func (c *Channel) checkSMTP(ctx context.Context) []channel.Finding {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	client, done, err := c.opt.SMTP.login(ctx)
	if err != nil {
		return []channel.Finding{{Name: "SMTP", Detail: fmt.Sprintf("%s: %v", c.opt.SMTP.Host, err), Fails: true,
			Next: "compare service.email.smtp, service.email.user and the password with the settings of your mailbox"}}
	}
	defer done()
	if err := client.Mail("<" + c.address() + ">"); err != nil {
		return []channel.Finding{{Name: "SMTP", Detail: notAccepted("sender", err).Error(), Fails: true,
			Next: "service.email.address must be an address that this account may send from"}}
	}
	list := []channel.Finding{{Name: "SMTP", Detail: "mails can be sent from " + c.address()}}
	test := c.secret(c.tag(checkTag, "check"))
	if err := client.Rcpt("<" + test + ">"); err != nil {
		return append(list, channel.Finding{Name: "plus address", Detail: notAccepted("recipient", err).Error(), Fails: true,
			Next: "switch on addresses with a plus sign (subaddresses) for the mailbox, or use another server"})
	}
	return append(list, channel.Finding{Name: "plus address", Detail: "the server accepts " + test +
		"; a mail to it must arrive in the mailbox"})
}
